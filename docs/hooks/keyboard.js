/* What scrolls sideways is reached with the keyboard, and the search has a name. */
addEventListener("load", () => {
  document.querySelectorAll(".md-typeset__scrollwrap, .cell-output, .cell-output pre, pre > code").forEach(one => { one.tabIndex = 0 })
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search")
  document.querySelectorAll(".md-code__nav").forEach((one, number) => one.setAttribute("aria-label", `Code ${number + 1}`))
})
