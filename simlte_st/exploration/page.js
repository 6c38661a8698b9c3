"use strict";
// The data is compressed in the page itself. Everything from a document becomes text, never markup.
(async () => {
  const NONE = "#9aa0a8", LISTED = 200, NEAR_PIXELS = 14, NAMED = 0.15;
  const byId = (id) => document.getElementById(id);
  const panel = byId("panel");

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "click") made.addEventListener("click", value);
      else if (key === "style") made.style.cssText = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  async function unpack() {
    const packed = Uint8Array.from(atob(byId("data").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  let corpus;
  try {
    corpus = await unpack();
  } catch (error) {
    panel.replaceChildren(element("p", { class: "problem" }, `This browser cannot read the documents: ${error}`));
    return;
  }
  const size = corpus.ids.length;
  const haystack = corpus.texts.map((text, row) => `${corpus.titles[row]}\n${corpus.ids[row]}\n${text}`.toLowerCase());
  const state = { colour: 0, words: [], only: null, chosen: null, opened: null };

  // Colours: by topic, class, number or date. The first are Tableau's, which stand out on light and dark.
  const PALETTE = ("4e79a7 f28e2b 59a14f e15759 b07aa1 9c755f edc948 499894 ff9da7 a0cbe8 ffbe7d 8cd17d d37295 d4a6c8 "
    + "b6992d 86bcb6").split(" ");
  const hue = (place) => place < PALETTE.length ? `#${PALETTE[place]}` : `hsl(${Math.round((place * 137.508) % 360)} ${place % 2 ? 55 : 75}% ${[52, 60, 45][place % 3]}%)`;
  const ramp = (share) => `hsl(${Math.round(260 - 215 * share)} 70% ${Math.round(38 + 18 * share)}%)`;
  const date = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
  const colours = [{ name: "topic", classes: corpus.topic_names, values: corpus.topics }, ...corpus.colours];

  function colourOf(scheme) {
    if (scheme.classes) return (row) => (scheme.values[row] < 0 ? NONE : hue(scheme.values[row]));
    const range = scheme.high - scheme.low || 1;
    return (row) => (scheme.values[row] === null ? NONE : ramp((scheme.values[row] - scheme.low) / range));
  }

  // The map.
  const item = JSON.parse(byId("figure").textContent);
  const [view] = await Bokeh.embed.embed_item(item, byId("plot")).then((manager) => [...manager.roots ?? manager]);
  const figure = view.model;
  const renderer = (name) => figure.renderers.find((each) => each.name === name);
  const points = renderer("points").data_source, marks = renderer("marks").data_source;
  const x = points.data.x, y = points.data.y;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function isShown(row) {
    return (state.only === null || colours[state.colour].values[row] === state.only)
      && state.words.every((word) => haystack[row].includes(word));
  }

  function paint() {
    const colour = colourOf(colours[state.colour]);
    const chosen = state.chosen && new Set(state.chosen);
    const strong = size > 5000 ? 0.65 : 0.8;
    const shown = [], fill = new Array(size), alpha = new Float32Array(size);
    for (let row = 0; row < size; row++) {
      fill[row] = colour(row);
      const seen = isShown(row);
      if (seen) shown.push(row);
      alpha[row] = seen ? (chosen && !chosen.has(row) ? 0.15 : fill[row] === NONE ? strong / 2 : strong) : 0.03;
    }
    points.data = { x, y, fill, alpha, title: corpus.titles, about: corpus.about };
    byId("count").textContent = shown.length === size ? "" : `${shown.length.toLocaleString()} of ${size.toLocaleString()}`;
    return shown;
  }

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), paper = style.getPropertyValue("--paper").trim();
    renderer("names").glyph.setv({ text_color: ink, background_fill_color: paper });
    renderer("marks").glyph.setv({ line_color: ink });
  }

  // Place each name near the middle of its topic, inside the frame and off other names, where it covers the smallest
  // share of any topic's points. Large topics come first, until names cover a share of the map; the list has them all.
  function placeNames() {
    const isNarrow = byId("plot").clientWidth < 600;
    const text = corpus.short_names.map((name) => (isNarrow ? name.split(", ")[0] : name));
    const pen = document.createElement("canvas").getContext("2d"), placed = [];
    pen.font = "bold 12px sans-serif";
    const { left, right, top, bottom } = view.frame.bbox, { x_scale, y_scale } = view.frame;
    let room = NAMED * (right - left) * (bottom - top);
    const counts = new Map(), drawn = [];
    for (let row = 0; row < size; row += Math.ceil(size / 5000)) {
      const topic = corpus.topics[row];
      counts.set(topic, (counts.get(topic) ?? 0) + 1);
      drawn.push({ across: x_scale.compute(x[row]), down: y_scale.compute(y[row]), topic });
    }
    const within = (value, low, high) => Math.max(low, Math.min(high, value));
    const moves = corpus.places.map((place, topic) => {
      const half = pen.measureText(text[topic]).width / 2 + 5, across = x_scale.compute(place[0]), down = y_scale.compute(place[1]);
      const isOutside = across < left || across > right || down < top || down > bottom; // after zooming in
      let best = null;
      if (!isOutside && room > 0) for (const lower of [0, 20, -20, 40, -40, 60, -60]) for (const aside of [0, half, -half]) {
        const name = { half, across: within(across + aside, left + half, right - half), down: within(down + lower, top + 10, bottom - 10) };
        const covers = (point, wide, high) => Math.abs(point.across - name.across) <= wide && Math.abs(point.down - name.down) <= high;
        if (placed.some((other) => covers(other, other.half + half, 19))) continue;
        let cost = Math.hypot(name.across - across, name.down - down) / 1000;
        for (const point of drawn) if (covers(point, half, 10)) cost += 1 / counts.get(point.topic);
        if (!best || cost < best.cost) best = { ...name, cost };
      }
      if (!best) {
        text[topic] = "";
        return [0, 0];
      }
      placed.push(best);
      room -= 2 * half * 20;
      return [best.across - across, best.down - down];
    });
    renderer("names").data_source.data = {
      x: corpus.places.map((place) => place[0]), y: corpus.places.map((place) => place[1]), text,
      aside: moves.map((move) => move[0]), lower: moves.map((move) => move[1]),
    };
  }

  function mark(rows) {
    marks.data = {
      x: rows.map((row) => x[row]), y: rows.map((row) => y[row]), size: rows.map((_, place) => (place ? 11 : 18)),
    };
  }

  // The panel: a legend, a list, or a document.
  const documentLink = (row) => element("button", { class: "link", type: "button", click: () => go(row) }, corpus.titles[row]);

  function showLegend(shown) {
    mark([]);
    const scheme = colours[state.colour];
    const parts = [];
    if (scheme.classes) {
      const counts = new Array(scheme.classes.length + 1).fill(0);
      for (const value of scheme.values) counts[value < 0 ? scheme.classes.length : value] += 1;
      const row = (value, name, count) => element("li", {},
        element("span", { class: "swatch", style: `background: ${value < 0 ? NONE : hue(value)}` }),
        element("button", { class: "link", type: "button", "aria-pressed": String(state.only === value),
          click: () => only(value) }, name), " ", element("span", { class: "number" }, count.toLocaleString()));
      const rows = scheme.classes.map((name, value) => row(value, name, counts[value]));
      if (counts.at(-1)) rows.push(row(-1, "none", counts.at(-1)));
      parts.push(element("h2", {}, scheme.name), element("ul", { id: "legend" }, ...rows));
      if (state.only !== null) parts.push(...listing(shown));
    } else {
      const stops = [0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ");
      const end = (value) => element("span", {}, scheme.date ? date(value) : Number(value.toPrecision(6)).toString());
      parts.push(element("h2", {}, scheme.name),
        element("div", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }),
        element("div", { class: "ends" }, end(scheme.low), end(scheme.high)));
    }
    parts.push(element("p", { class: "about" }, "Click a point to open its document. Circle points with the lasso to list "
      + "them. Click a class to show it alone. Scroll to zoom, drag to move."));
    panel.replaceChildren(...parts);
  }

  function listing(rows) {
    return [
      element("p", {}, element("button", { class: "plain", type: "button", click: reset }, "Clear")),
      element("ul", { id: "list" }, ...rows.slice(0, LISTED).map((row) => element("li", {}, documentLink(row)))),
      ...(rows.length > LISTED ? [element("p", { class: "about" }, `and ${(rows.length - LISTED).toLocaleString()} more`)] : []),
    ];
  }

  function showList(rows, chosen) {
    mark([]);
    const words = state.words.length ? [`with “${state.words.join(" ")}”`] : [];
    panel.replaceChildren(element("h2", {}, [rows.length.toLocaleString(), ...chosen, ...words].join(" ")), ...listing(rows));
  }

  function showDocument(row) {
    const near = corpus.near[row];
    mark([row, ...near]);
    const values = Object.entries(corpus.columns).filter(([, column]) => column[row] !== "");
    const topic = corpus.topics[row];
    const cut = corpus.lengths[row] - corpus.texts[row].length;
    const duplicates = corpus.groups.flatMap((group, other) => (group === corpus.groups[row] && other !== row ? [other] : []));
    panel.replaceChildren(
      element("p", {}, element("button", { class: "plain", type: "button", id: "back", click: () => history.back() }, "Back")),
      element("h2", { id: "document-title" }, corpus.titles[row]),
      element("dl", { class: "values" }, ...[["id", corpus.ids[row]], ["topic", topic < 0 ? "none" : corpus.topic_names[topic]],
        ...values.map(([name, column]) => [name, column[row]])].flatMap(([name, value]) =>
        [element("dt", {}, name), element("dd", {}, value)])),
      ...(duplicates.length ? [element("p", {}, "Near-duplicates: ", ...duplicates.slice(0, 10).flatMap((other) => [documentLink(other), " "]))] : []),
      element("h2", {}, "Nearest documents"),
      element("ul", { id: "near" }, ...near.map((other, place) => element("li", {},
        element("span", { class: "number" }, corpus.cosines[row][place].toFixed(2)), documentLink(other)))),
      element("h2", {}, "Text"),
      element("p", { class: "text", id: "document-text" }, corpus.texts[row]),
      ...(cut > 0 ? [element("p", { class: "about" }, `… ${cut.toLocaleString()} more characters`)] : []),
    );
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true }); // the link that opened it is gone
    if (panel.offsetTop > byId("plot").offsetTop + 50) panel.scrollIntoView(); // a narrow screen: it stands below the map
  }

  // Actions. The address holds the open document, so that the browser's Back button works.
  const go = (row) => { location.hash = `document=${row}`; };

  function show() {
    const match = /^#document=(\d+)$/.exec(location.hash);
    state.opened = match && Number(match[1]) < size ? Number(match[1]) : null;
    const shown = paint();
    if (state.opened !== null) showDocument(state.opened);
    else if (state.chosen) showList(state.chosen.filter(isShown), ["selected"]);
    else if (state.words.length) showList(shown, []);
    else showLegend(shown);
  }

  function leave() { // an open document would hide the list
    if (state.opened !== null) history.pushState(null, "", "#map");
    show();
  }

  function only(value) { state.only = state.only === value ? null : value; leave(); }

  function reset() {
    Object.assign(state, { words: [], only: null, chosen: null });
    byId("search").value = "";
    leave();
  }

  function tap(event) {
    const across = view.frame.x_scale, up = view.frame.y_scale;
    let best = null, least = NEAR_PIXELS ** 2;
    for (let row = 0; row < size; row++) {
      const distance = (across.compute(x[row]) - across.compute(event.x)) ** 2 + (up.compute(y[row]) - up.compute(event.y)) ** 2;
      if (distance < least && isShown(row)) [best, least] = [row, distance];
    }
    if (best !== null) go(best);
  }

  let waiting;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      leave();
    }, 150);
  });
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const menu = byId("colour");
  menu.append(...colours.map((scheme, place) => element("option", { value: place }, scheme.name)));
  menu.addEventListener("change", () => { Object.assign(state, { colour: Number(menu.value), only: null }); leave(); });
  document.body.addEventListener("click", (event) => {
    const target = event.target.closest("[data-topic]");
    if (target) {
      menu.value = "0";
      Object.assign(state, { colour: 0, only: Number(target.dataset.topic) });
      leave();
      byId("map").scrollIntoView();
    } else if (event.target.closest("a[href^='#document=']")) byId("map").scrollIntoView();
  });
  window.addEventListener("hashchange", show);
  dark.addEventListener("change", theme);
  figure.on_event("tap", tap);
  points.selected.properties.indices.change.connect(() => {
    const rows = [...points.selected.indices].filter(isShown);
    state.chosen = rows.length ? rows : null;
    leave();
  });
  let placing = 0;
  const placeSoon = () => {
    cancelAnimationFrame(placing);
    placing = requestAnimationFrame(placeNames);
  };
  placeNames();
  for (const side of ["inner_width", "inner_height"]) figure.properties[side].change.connect(placeSoon);
  for (const range of [figure.x_range, figure.y_range]) {
    for (const end of ["start", "end"]) range.properties[end].change.connect(placeSoon);
  }
  theme();
  show();
  renderer("points").glyph.setv({ size: size > 5000 ? 4 : size > 300 ? 6 : 9, fill_color: { field: "fill" }, fill_alpha: { field: "alpha" } });
  document.documentElement.dataset.ready = "true";
})();
