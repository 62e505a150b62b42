"""A program that a step without data starts: compiled as where there are data, and not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun


@dataclass(frozen=True, slots=True)
class Program:
    """A jitted function and the types of what it is given; JAX compiles equal ones once.

    jaxpr: the function as JAX traced it. name: of the function. donated: which arguments XLA may write over.
    keep_unused: whether those stay that nobody reads. arguments: what has shape, dtype and weak_type of each argument.
    """

    jaxpr: Any
    name: str
    donated: tuple[int, ...]
    keep_unused: bool
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, arguments: Sequence[Any], params: Mapping[str, Any]) -> Program:
        """Return the program that a call of JAX's primitive "jit" with these parameters starts."""
        donated = tuple(number for number, gone in enumerate(params["donated_invars"]) if gone)
        types = tuple(jax.typeof(argument) for argument in arguments)
        return cls(params["jaxpr"], params["name"], donated, params["keep_unused"], types)

    def compiled(self) -> jax.stages.Compiled:
        """The program as XLA has it."""

        def program(*arrays: Any) -> Any:
            return jaxpr_as_fun(self.jaxpr)(*arrays)

        program.__name__ = program.__qualname__ = self.name
        with jax.core.eval_context():
            jitted = jax.jit(program, donate_argnums=self.donated, keep_unused=self.keep_unused)
            arguments = (
                jax.ShapeDtypeStruct(argument_type.shape, argument_type.dtype, weak_type=argument_type.weak_type)
                for argument_type in self.arguments
            )
            return jitted.lower(*arguments).compile()
