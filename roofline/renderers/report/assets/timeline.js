// The timeline: which part of the step is seen, and what ran at an instant.
{
  const WIDE = 1000000; // units of the picture along the step
  const MOST = 2000; // how far it can be magnified

  const written = (ns) => {
    const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return ns ? `${Number((ns / size).toPrecision(6))} ${unit}` : "0";
  };

  function timelineOf(root, step) {
    const picture = root.querySelector(".timeline");
    const lanes = root.querySelector(".lanes");
    const ticks = root.querySelector(".ticks");
    const box = root.querySelector(".lanes .chosen");
    const readout = root.querySelector(".readout");
    let from = 0, to = step.wall, chosen = -1;

    function view(start, length) {
      length = Math.max(step.wall / MOST, Math.min(step.wall, length));
      from = Math.max(0, Math.min(step.wall - length, start));
      to = from + length;
      const scale = WIDE / step.wall;
      lanes.setAttribute("viewBox", `${from * scale} 0 ${length * scale} 70`);
      const number = Math.max(2, Math.min(8, Math.floor(picture.clientWidth / 90)));
      const rough = length / number, power = 10 ** Math.floor(Math.log10(rough));
      const apart = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999);
      const made = [];
      for (let at = Math.ceil(from / apart - 1e-9) * apart; at <= to * (1 + 1e-12); at += apart) {
        const share = (at - from) / length;
        const line = document.createElementNS(lanes.namespaceURI, "line");
        const words = document.createElementNS(lanes.namespaceURI, "text");
        for (const [key, value] of Object.entries({ x1: `${100 * share}%`, x2: `${100 * share}%`, y1: 84, y2: 90, class: "tick" }))
          line.setAttribute(key, value);
        const anchor = share < 0.04 ? "start" : share > 0.94 ? "end" : "middle";
        for (const [key, value] of Object.entries({ x: `${100 * share}%`, y: 104, class: "small", "text-anchor": anchor }))
          words.setAttribute(key, value);
        words.textContent = written(at);
        made.push(line, words);
      }
      ticks.replaceChildren(...made);
    }

    // The last place whose start is not after an instant.
    function last(starts, at) {
      let low = 0, high = starts.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (starts[middle] <= at) low = middle + 1;
        else high = middle;
      }
      return low - 1;
    }

    function running(at) {
      const place = last(step.start, at);
      for (let back = place; back >= 0 && back > place - 200; back--) if (step.end[back] >= at) return back;
      return -1;
    }

    function mark(start, end, top, height) {
      const scale = WIDE / step.wall;
      for (const [key, value] of [["x", start * scale], ["width", (end - start) * scale], ["y", top], ["height", height]])
        box.setAttribute(key, value);
    }

    function look(place) {
      chosen = place;
      mark(step.start[place], step.end[place], 0, 44);
      readout.replaceChildren(
        nameOf(textOf(step.name, place), 70),
        ` · ${textOf(step.time, place)} from ${written(step.start[place])} · ${textOf(step.bound, place)} · `,
        nameOf(textOf(step.scope, place), 70, true),
      );
    }

    function rest(place) {
      const idle = step.idle;
      mark(idle.start[place], idle.end[place], 50, 18);
      const cause = textOf(idle.cause, place);
      readout.textContent = `No op for ${textOf(idle.time, place)} from ${written(idle.start[place])}${cause ? ` · on average ${cause}` : ""}`;
    }

    picture.addEventListener("pointermove", (event) => {
      const frame = picture.getBoundingClientRect();
      const at = from + ((event.clientX - frame.left) / frame.width) * (to - from);
      const place = running(at);
      if (place >= 0) return look(place);
      const gap = last(step.idle.start, at);
      if (gap >= 0 && step.idle.end[gap] >= at) rest(gap);
      return undefined;
    });

    function zoom(what) {
      const length = to - from;
      const middle = chosen >= 0 && step.start[chosen] >= from && step.start[chosen] <= to ? (step.start[chosen] + step.end[chosen]) / 2 : from + length / 2;
      if (what === "in") view(middle - length / 4, length / 2);
      else if (what === "out") view(middle - length, length * 2);
      else if (what === "left") view(from - length / 3, length);
      else if (what === "right") view(from + length / 3, length);
      else view(0, step.wall);
    }

    root.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) zoom(button.dataset.zoom);
    });
    picture.addEventListener("dblclick", () => zoom("in"));
    picture.addEventListener("keydown", (event) => {
      const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (turn && step.start.length) {
        look(Math.max(0, Math.min(step.start.length - 1, chosen + turn)));
        if (step.end[chosen] < from || step.start[chosen] > to) view(step.start[chosen] - (to - from) / 2, to - from);
      } else if (event.key === "+" || event.key === "=") zoom("in");
      else if (event.key === "-") zoom("out");
      else if (event.key === "Home") zoom("all");
      else return;
      event.preventDefault();
    });
  }

  for (const root of document.querySelectorAll("[data-timeline]"))
    timelineOf(root, given[root.dataset.timeline].timeline);
}
