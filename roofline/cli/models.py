"""List the models: `roofline models`."""

from __future__ import annotations


def command() -> None:
    """List the models, and the frameworks that build each."""
    from roofline import models, plugins

    folder = plugins.folder("roofline.models")
    frameworks = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))
    built = {framework: plugins.names(f"roofline.models.{framework}", sorted_by_kind=True) for framework in frameworks}
    names = plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True)
    width = max(map(len, names))
    for name in names:
        geometry = models.geometry(name)
        builders = ", ".join(framework for framework in frameworks if name in built[framework])
        print(f"{name:{width}} {geometry.title}")
        print(
            f"{'':{width}} in {builders or 'no framework yet'}; sizes {', '.join(geometry.sizes)}; "
            f"{', '.join(geometry.modes)}"
        )
    print("\nA step of your own: roofline profile path/to/file.py:function --backend torch")
