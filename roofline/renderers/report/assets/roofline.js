// The roofline: which points are shown and where, which one is looked at, and the picture as a file.
{
  const NEAR = 28; // px around the pointer in which a point is meant
  const STYLES = [
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "color",
    "font-size", "font-family", "text-anchor",
  ];

  function pictureOf(root, points, run) {
    const number = points.seconds.length;
    const planes = [...root.querySelectorAll(".plane, .strip")];
    const marks = [...root.querySelectorAll(".points > svg")];
    const readout = root.querySelector(".readout");
    const x = Float64Array.from(marks, (mark) => parseFloat(mark.getAttribute("x")) / 100);
    const y = Float64Array.from(marks, (mark) => parseFloat(mark.getAttribute("y")) / 100);
    const shown = new Uint8Array(number).fill(1);
    const order = Int32Array.from(points.seconds, (_, place) => place).sort((a, b) => points.seconds[b] - points.seconds[a]);
    const whole = points.seconds.reduce((sum, value) => sum + value, 0);
    const before = new Float64Array(number); // share of the time in longer points
    let sum = 0;
    for (const place of order) {
      before[place] = whole ? sum / whole : 0;
      sum += points.seconds[place];
    }
    const axis = ["low", "high", "near", "far"].map((key) => parseFloat(root.dataset[key]));
    let chosen = -1;

    const control = (what) => root.querySelector(`[data-choose="${what}"]`).value;

    function arrange() {
      const level = control("level"), phase = control("phase"), precision = control("precision");
      const [low, high, near, far] = axis;
      const bytes = points.intensity[level] ?? points.intensity.dram;
      const share = root.querySelector("[data-slider]").value;
      root.querySelector("output").textContent = `${share} %`;
      const groups = new Set([...root.querySelectorAll(".groups input:checked")].map((box) => box.value));
      for (let place = 0; place < number; place++) {
        const placed = place < points.placed;
        const see =
          groups.has(textOf(points.group, place)) &&
          (!phase || points.phase[place] === Number(phase)) &&
          (!precision || textOf(points.precision, place) === precision) &&
          before[place] < share / 100 + 1e-9 &&
          (!placed || bytes[place] !== null);
        if (placed && see) {
          x[place] = near + ((far - near) * Math.log(bytes[place] / low)) / Math.log(high / low);
          marks[place].setAttribute("x", `${(100 * x[place]).toFixed(3)}%`);
        }
        if (see !== Boolean(shown[place])) {
          shown[place] = see ? 1 : 0;
          if (see) marks[place].removeAttribute("display");
          else marks[place].setAttribute("display", "none");
        }
      }
      for (const roof of root.querySelectorAll(".slope"))
        roof.classList.toggle("faint", !roof.dataset.levels.split(" ").includes(level));
      for (const roof of root.querySelectorAll(".peak"))
        roof.classList.toggle("faint", precision !== "" && !roof.dataset.precisions.split(" ").includes(precision));
      look(chosen >= 0 && shown[chosen] ? chosen : -1);
    }

    const planeOf = (place) => planes[place < points.placed ? 0 : planes.length - 1];

    function look(place) {
      chosen = place;
      for (const plane of planes) plane.querySelector(".ring").setAttribute("cx", "-10%");
      if (place < 0) return;
      const ring = planeOf(place).querySelector(".ring");
      ring.setAttribute("cx", `${100 * x[place]}%`);
      ring.setAttribute("cy", `${100 * y[place]}%`);
      const longest = points.seconds[order[0]] || 1;
      ring.setAttribute("r", 4 + Math.max(2.5, 17 * Math.sqrt(points.seconds[place] / longest)));
      const title = make("h4");
      title.append(nameOf(textOf(points.name, place), 80));
      const list = make("dl");
      for (const [what, column] of Object.entries(points.facts)) list.append(make("dt", what), make("dd", textOf(column, place)));
      const button = make("button", "Find in the table");
      button.type = "button";
      button.dataset.go = place;
      readout.replaceChildren(title, list, button);
    }

    function go(place) {
      if (place >= 0 && tables[run]) tables[run].only(points.signature[place], points.phase[place]);
    }

    function nearest(plane, event) {
      const box = plane.getBoundingClientRect();
      const left = event.clientX - box.left, top = event.clientY - box.top;
      const [from, to] = plane.matches(".plane") ? [0, points.placed] : [points.placed, number];
      let best = -1, least = NEAR * NEAR;
      for (let place = from; place < to; place++) {
        if (!shown[place]) continue;
        const across = x[place] * box.width - left, along = y[place] * box.height - top;
        const apart = across * across + along * along;
        if (apart < least) {
          least = apart;
          best = place;
        }
      }
      return best;
    }

    for (const plane of planes) {
      let waiting = null;
      plane.addEventListener("pointermove", (event) => {
        if (waiting === null)
          requestAnimationFrame(() => {
            const place = nearest(plane, waiting);
            waiting = null;
            if (place >= 0 && place !== chosen) look(place);
          });
        waiting = event;
      });
      plane.addEventListener("click", (event) => {
        const place = nearest(plane, event);
        if (place < 0) return;
        look(place);
        if (event.pointerType !== "touch") go(place); // a finger cannot hover: it looks first, the button goes
      });
    }

    root.addEventListener("keydown", (event) => {
      if (!event.target.matches(".plane")) return;
      const seen = [...order].filter((place) => shown[place]);
      const at = seen.indexOf(chosen);
      const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: seen.length - 1 };
      if (event.key in next && seen.length) look(seen[Math.max(0, Math.min(seen.length - 1, next[event.key]))]);
      else if (event.key === "Enter") go(chosen);
      else return;
      event.preventDefault();
    });
    root.addEventListener("input", arrange);
    root.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.go) go(Number(button.dataset.go));
      if (button.dataset.save) save(button.dataset.save);
    });

    // ---- the picture as a file: what is seen, with its colours, and nothing of the page

    function baked(plane) {
      const copy = plane.cloneNode(true);
      const from = [plane, ...plane.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
      for (let place = 0; place < from.length; place++) {
        const style = getComputedStyle(from[place]);
        for (const name of STYLES) to[place].setAttribute(name, style.getPropertyValue(name));
        for (const name of ["class", "tabindex", "role", "aria-label"]) to[place].removeAttribute(name);
      }
      for (const hidden of copy.querySelectorAll('[display="none"]')) hidden.remove();
      return copy;
    }

    function drawing() {
      const space = "http://www.w3.org/2000/svg";
      const style = getComputedStyle(document.body);
      const out = document.createElementNS(space, "svg");
      const width = planes[0].getBoundingClientRect().width;
      const add = (element, attributes, words) => {
        const made = document.createElementNS(space, element);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        if (words) made.textContent = words;
        out.append(made);
      };
      add("rect", { width: "100%", height: "100%", fill: style.backgroundColor });
      let top = 0;
      for (const plane of planes) {
        const words = { x: 4, y: top + 17, fill: style.color, "font-size": "13px", "font-family": style.fontFamily };
        add("text", words, plane.querySelector("title").textContent);
        const height = plane.getBoundingClientRect().height;
        const copy = baked(plane);
        add("rect", { y: top + 26, width: "100%", height, fill: getComputedStyle(plane).backgroundColor });
        for (const [key, value] of [["x", 0], ["y", top + 26], ["width", width], ["height", height]]) copy.setAttribute(key, value);
        out.append(copy);
        top += 26 + height + 8;
      }
      out.setAttribute("width", width);
      out.setAttribute("height", top);
      return { width, height: top, source: new XMLSerializer().serializeToString(out) };
    }

    function download(blob, file) {
      const link = make("a");
      link.href = URL.createObjectURL(blob);
      link.download = file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }

    function save(kind) {
      const { width, height, source } = drawing();
      const vector = new Blob([source], { type: "image/svg+xml" });
      if (kind === "svg") return download(vector, "roofline.svg");
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = make("canvas");
        canvas.width = 2 * width;
        canvas.height = 2 * height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => download(blob, "roofline.png"), "image/png");
      });
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source);
      return undefined;
    }

    look(number ? order[0] : -1);
    return {
      // The point of a signature and phase, and there.
      find(signature, phase) {
        for (let place = 0; place < number; place++)
          if (points.signature[place] === signature && points.phase[place] === phase) {
            look(place);
            root.scrollIntoView({ block: "start" });
            planes[0].focus({ preventScroll: true });
            return;
          }
      },
    };
  }

  for (const root of document.querySelectorAll("[data-roofline]")) {
    const run = root.dataset.roofline;
    pictures[run] = pictureOf(root, given[run].points, run);
  }
}
