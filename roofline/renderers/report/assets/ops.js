// The table of all ops: sorted and filtered as columns of numbers, of which a page is made into rows. Equal ops are one
// row, until one of its scopes or kernels is looked for, or each op is asked for.
{
  const PAGE = 30;
  const WIDTH = { op: 70, scope: 48, kernel: 50 };

  // Whether each row has one of the texts that are allowed; a text is looked at once, however many rows have it.
  function allow(kept, column, allowed) {
    const flags = Uint8Array.from(column.texts, (words) => (allowed(words) ? 1 : 0));
    for (let row = 0; row < kept.length; row++) kept[row] &= flags[column.rows[row]];
  }

  // The place of each text among all of them: words are compared once, not for each pair of rows.
  function ranks(column) {
    const order = column.texts.map((words, number) => [words.toLowerCase(), number]);
    order.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
    const rank = new Float64Array(order.length);
    order.forEach(([, number], place) => { rank[number] = place; });
    return Float64Array.from(column.rows, (number) => rank[number]);
  }

  function tableOf(root, { each, equal }) {
    const heads = [...root.querySelectorAll("th button[data-sort]")];
    const keys = heads.map((button) => button.dataset.sort);
    const body = root.querySelector("tbody");
    const count = root.querySelector(".count");
    const clear = root.querySelector("[data-clear]");
    const fold = root.querySelector("[data-equal]");
    const numbers = (key) => key in ops.by;
    for (const rows of [each, equal]) if (rows.by.time) rows.by.share = rows.by.time;
    let ops = equal;
    let sorted = keys.includes("time") ? "time" : "work";
    let down = true;
    let page = 0;
    let only = null;
    let rows = new Int32Array(0);
    const known = new Map([[each, {}], [equal, {}]]);

    const values = (key) =>
      (known.get(ops)[key] ??= numbers(key) ? Float64Array.from(ops.by[key], (value) => value ?? NaN) : ranks(ops[key]));

    function find() {
      const ofEach = ["scope", "kernel"].some((key) => root.querySelector(`[data-search="${key}"]`)?.value.trim());
      ops = fold.checked && !only && !ofEach ? equal : each;
      const kept = new Uint8Array(ops.rows).fill(1);
      let filtered = only !== null;
      for (const input of root.querySelectorAll("[data-filter]")) {
        if (!input.value) continue;
        filtered = true;
        allow(kept, ops[input.dataset.filter], (words) => words === input.value);
      }
      for (const input of root.querySelectorAll("[data-search]")) {
        const wanted = input.value.trim().toLowerCase();
        if (!wanted) continue;
        filtered = true;
        const holds = (words) => words.toLowerCase().includes(wanted);
        if (input.dataset.search !== "op") allow(kept, ops[input.dataset.search], holds);
        else {
          const shapes = new Uint8Array(ops.rows).fill(1);
          allow(shapes, ops.shapes, holds);
          const named = new Uint8Array(ops.rows).fill(1);
          allow(named, ops.op, holds);
          for (let row = 0; row < kept.length; row++) kept[row] &= named[row] | shapes[row];
        }
      }
      if (only)
        for (let row = 0; row < kept.length; row++)
          kept[row] &= ops.signature[row] === only.signature && ops.phase_number[row] === only.phase ? 1 : 0;
      const found = [];
      for (let row = 0; row < kept.length; row++) if (kept[row]) found.push(row);
      const by = values(sorted), turn = down ? -1 : 1;
      found.sort((a, b) => {
        const one = by[a], other = by[b];
        if (one !== one) return other !== other ? a - b : 1; // what is unknown comes last, either way
        if (other !== other) return -1;
        return one === other ? a - b : (one - other) * turn;
      });
      rows = Int32Array.from(found);
      clear.hidden = !filtered;
      page = 0;
    }

    function cellOf(key, row) {
      const words = textOf(ops[key], row);
      if (numbers(key)) return make("td", words, "number");
      const cell = make("td", undefined, key === "op" ? "name" : key in WIDTH ? "path" : "word");
      if (key === "op") {
        const button = make("button", undefined, "point-to");
        button.type = "button";
        button.dataset.row = row;
        button.append(nameOf(words, WIDTH.op));
        if (ops === equal && textOf(ops.times, row) !== "1") {
          const times = make("button", `${textOf(ops.times, row)} ×`, "times");
          times.type = "button";
          times.title = "each of them in a row";
          times.dataset.unfold = row;
          cell.append(times, " ");
        }
        cell.append(button);
        const shapes = textOf(ops.shapes, row);
        if (shapes) cell.appendChild(make("small")).append(nameOf(shapes, WIDTH.op));
      } else if (key in WIDTH) cell.append(nameOf(words, WIDTH[key], key === "scope" && ops === each));
      else {
        cell.textContent = words;
        const more = key === "known" ? ops.note : key === "roof" ? ops.ceiling : null;
        if (more) cell.title = textOf(more, row);
      }
      return cell;
    }

    // Of all rows a page; on paper every one.
    function show(all) {
      const first = all ? 0 : page * PAGE, last = all ? rows.length : Math.min(rows.length, first + PAGE);
      const made = document.createDocumentFragment();
      for (let place = first; place < last; place++) {
        const line = make("tr");
        line.tabIndex = -1;
        for (const key of keys) line.append(cellOf(key, rows[place]));
        made.append(line);
      }
      body.replaceChildren(made);
      const of = rows.length === ops.rows ? `${ops.rows}` : `${rows.length} (of ${ops.rows})`;
      const what = ops === equal ? "different ops" : "ops";
      count.textContent = rows.length ? `${first + 1}–${last} of ${of} ${what}` : `no op of ${each.rows} fits`;
      root.querySelector('[data-turn="-1"]').disabled = first === 0;
      root.querySelector('[data-turn="1"]').disabled = last === rows.length;
      for (const button of heads) {
        const head = button.closest("th");
        if (button.dataset.sort === sorted) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
    }

    function again() {
      find();
      show(false);
    }

    function empty() {
      only = null;
      for (const input of root.querySelectorAll("[data-filter], [data-search]")) input.value = "";
    }

    root.addEventListener("input", (event) => {
      if (event.target.matches("[data-filter], [data-search], [data-equal]")) again();
    });
    root.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.sort) {
        down = button.dataset.sort === sorted ? !down : numbers(button.dataset.sort);
        sorted = button.dataset.sort;
        again();
      } else if (button.dataset.turn) {
        page += Number(button.dataset.turn);
        show(false);
      } else if ("clear" in button.dataset) {
        empty();
        again();
      } else if (button.dataset.unfold) {
        const row = Number(button.dataset.unfold);
        only = { signature: ops.signature[row], phase: ops.phase_number[row] };
        again();
      } else if (button.dataset.row) {
        const row = Number(button.dataset.row);
        const picture = pictures[root.dataset.ops];
        if (picture) picture.find(ops.signature[row], ops.phase_number[row]);
      }
    });
    again();

    return {
      show,
      // Only the ops of one signature and phase, and there.
      only(signature, phase) {
        empty();
        only = { signature, phase };
        again();
        const line = body.querySelector("tr");
        if (!line) return;
        line.classList.add("chosen");
        line.focus({ preventScroll: true });
        root.scrollIntoView({ block: "start" });
      },
    };
  }

  for (const root of document.querySelectorAll("[data-ops]"))
    tables[root.dataset.ops] = tableOf(root, given[root.dataset.ops].ops);
}
