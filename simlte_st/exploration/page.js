// The page contains its own data, compressed. Content from documents is inserted as text, never as markup.
(async () => {
  const NO_COLOUR = "#9aa0a8", MAX_LISTED = 200, CLICK_PIXELS = 14, NAME_SHARE = 0.15, HITS = 10,
    TIP_CHARACTERS = 160, MAX_CLASSES = 100, MAP_TERMS = 2, MAX_LEAD = 300;
  const TIP = '<div style="max-width: 22rem; white-space: normal; font: 13px/1.4 system-ui, sans-serif"><b>@title</b>'
    + "<div>@about</div></div>";
  const byId = (id) => document.getElementById(id);
  const panel = byId("panel");

  let corpus, search = null;
  try {
    corpus = await unpack("data").json();
    if (byId("model").textContent) {
      [corpus.model, corpus.vectors] = await Promise.all([unpack("model").json(), unpack("vectors").arrayBuffer()]);
    }
    if (corpus.words) search = makeSearch(corpus);
    fillSections(corpus);
    await loadBokeh();
  } catch (error) {
    panel.replaceChildren(element("p", { class: "problem" }, `This browser cannot read the documents: ${error}`));
    return;
  }
  const size = corpus.ids.length;
  const searchTexts = search ? [] : corpus.texts.map((text, row) => `${corpus.titles[row]}\n${corpus.ids[row]}\n${text}`.toLowerCase());
  const about = corpus.texts.map((text, row) => {
    const start = text.slice(0, 2 * TIP_CHARACTERS).replace(/\s+/g, " ").trim().slice(0, TIP_CHARACTERS);
    return `${corpus.topic_names[corpus.topics[row]] ?? "no topic"}: ${start}`;
  });
  const state = { colour: 0, query: "", hits: HITS, classFilter: null, selection: null, openRow: null };

  // Colours by topic, class, number or date. The first are Tableau's, which stand out on light and dark backgrounds.
  const PALETTE = ("4e79a7 f28e2b 59a14f e15759 b07aa1 9c755f edc948 499894 ff9da7 a0cbe8 ffbe7d 8cd17d d37295 d4a6c8 "
    + "b6992d 86bcb6").split(" ");
  const classColour = (index) => index < PALETTE.length ? `#${PALETTE[index]}` : `hsl(${Math.round((index * 137.508) % 360)} ${index % 2 ? 55 : 75}% ${[52, 60, 45][index % 3]}%)`;
  const rampColour = (share) => `hsl(${Math.round(260 - 215 * share)} 70% ${Math.round(38 + 18 * share)}%)`;
  const formatDate = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

  // The colour scheme of a column of numbers, dates or classes.
  function makeScheme({ name, kind, values, numbers }) {
    if (kind !== "category") {
      const given = numbers.filter((number) => number !== null).sort((a, b) => a - b);
      return { name, values: numbers, low: given[0], high: given.at(-1), date: kind === "date" };
    }
    const classes = [...new Set(values)].filter(Boolean).sort().slice(0, MAX_CLASSES);
    const indices = new Map(classes.map((value, index) => [value, index]));
    return { name, classes, values: values.map((value) => indices.get(value) ?? -1) };
  }
  const schemes = [{ name: "topic", classes: corpus.topic_names, values: corpus.topics },
    ...corpus.columns.filter((column) => column.kind !== "text").map(makeScheme)];

  function rowColours(scheme) {
    if (scheme.classes) return (row) => (scheme.values[row] < 0 ? NO_COLOUR : classColour(scheme.values[row]));
    const range = scheme.high - scheme.low || 1;
    return (row) => (scheme.values[row] === null ? NO_COLOUR : rampColour((scheme.values[row] - scheme.low) / range));
  }

  // The map.
  const [figureView] = await Bokeh.embed.embed_item(corpus.figure, byId("plot")).then((manager) => [...manager.roots ?? manager]);
  const figure = figureView.model;
  const findRenderer = (name) => figure.renderers.find((renderer) => renderer.name === name);
  const points = findRenderer("points").data_source, marks = findRenderer("marks").data_source;
  const x = points.data.x, y = points.data.y;
  const places = corpus.topic_names.map((_, topic) => findPlace(topic));
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");

  // The place of a topic's name: that of the document nearest to the median place of its documents.
  function findPlace(topic) {
    const rows = corpus.topics.flatMap((value, row) => (value === topic ? [row] : []));
    const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
    const across = median(rows.map((row) => x[row])), down = median(rows.map((row) => y[row]));
    const distance = (row) => Math.hypot(x[row] - across, y[row] - down);
    const nearest = rows.reduce((best, row) => (distance(row) < distance(best) ? row : best));
    return [x[nearest], y[nearest]];
  }

  function matchesFilters(row) {
    return (state.classFilter === null || schemes[state.colour].values[row] === state.classFilter)
      && (search || state.query.toLowerCase().split(/\s+/).every((word) => searchTexts[row].includes(word)));
  }

  function paintPoints() {
    const colour = rowColours(schemes[state.colour]);
    const selection = state.selection && new Set(state.selection);
    const opacity = size > 5000 ? 0.65 : 0.8;
    const matches = [], fill = new Array(size), alpha = new Float32Array(size);
    for (let row = 0; row < size; row++) {
      fill[row] = colour(row);
      const isMatch = matchesFilters(row);
      if (isMatch) matches.push(row);
      alpha[row] = isMatch ? (selection && !selection.has(row) ? 0.15 : fill[row] === NO_COLOUR ? opacity / 2 : opacity) : 0.03;
    }
    points.data = { x, y, fill, alpha, title: corpus.titles, about };
    byId("count").textContent = matches.length === size ? "" : `${matches.length.toLocaleString()} of ${size.toLocaleString()}`;
    return matches;
  }

  function applyTheme() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), paper = style.getPropertyValue("--paper").trim();
    findRenderer("names").glyph.setv({ text_color: ink, background_fill_color: paper });
    findRenderer("marks").glyph.setv({ line_color: ink });
  }

  // Place each name near the middle of its topic, inside the frame and away from other names, where it hides as small a
  // share of each topic's points as possible. Large topics come first, until the names fill NAME_SHARE of the map. The
  // legend lists all topics.
  function placeNames() {
    const isNarrow = byId("plot").clientWidth < 600;
    const text = corpus.terms.map((terms) => terms.slice(0, isNarrow ? 1 : MAP_TERMS).join(", "));
    const canvas = document.createElement("canvas").getContext("2d"), labels = [];
    canvas.font = "bold 12px sans-serif";
    const { left, right, top, bottom } = figureView.frame.bbox, { x_scale, y_scale } = figureView.frame;
    let freeArea = NAME_SHARE * (right - left) * (bottom - top);
    const counts = new Map(), pixels = [];
    for (let row = 0; row < size; row += Math.ceil(size / 5000)) {
      const topic = corpus.topics[row];
      counts.set(topic, (counts.get(topic) ?? 0) + 1);
      pixels.push({ across: x_scale.compute(x[row]), down: y_scale.compute(y[row]), topic });
    }
    const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
    const moves = places.map((place, topic) => {
      const half = canvas.measureText(text[topic]).width / 2 + 5, across = x_scale.compute(place[0]), down = y_scale.compute(place[1]);
      const isOutside = across < left || across > right || down < top || down > bottom; // after zooming in
      let best = null;
      if (!isOutside && freeArea > 0) for (const lower of [0, 20, -20, 40, -40, 60, -60]) for (const aside of [0, half, -half]) {
        const label = { half, across: clamp(across + aside, left + half, right - half), down: clamp(down + lower, top + 10, bottom - 10) };
        const covers = (point, width, height) => Math.abs(point.across - label.across) <= width && Math.abs(point.down - label.down) <= height;
        if (labels.some((placedLabel) => covers(placedLabel, placedLabel.half + half, 19))) continue;
        let cost = Math.hypot(label.across - across, label.down - down) / 1000;
        for (const pixel of pixels) if (covers(pixel, half, 10)) cost += 1 / counts.get(pixel.topic);
        if (!best || cost < best.cost) best = { ...label, cost };
      }
      if (!best) {
        text[topic] = "";
        return [0, 0];
      }
      labels.push(best);
      freeArea -= 2 * half * 20;
      return [best.across - across, best.down - down];
    });
    findRenderer("names").data_source.data = {
      x: places.map((place) => place[0]), y: places.map((place) => place[1]), text,
      x_offset: moves.map((move) => move[0]), y_offset: moves.map((move) => move[1]),
    };
  }

  function markDocuments(rows) {
    marks.data = {
      x: rows.map((row) => x[row]), y: rows.map((row) => y[row]), size: rows.map((_, index) => (index ? 11 : 18)),
    };
  }

  // The panel: a legend, a list, or a document.
  const documentLink = (row, text = corpus.titles[row]) => element("button", { class: "link", type: "button", click: () => openDocument(row) }, text);

  function showLegend(matches) {
    markDocuments([]);
    const scheme = schemes[state.colour];
    const parts = [];
    if (scheme.classes) {
      const counts = new Array(scheme.classes.length + 1).fill(0);
      for (const index of scheme.values) counts[index < 0 ? scheme.classes.length : index] += 1;
      const entry = (index, name, count) => element("li", {},
        element("span", { class: "swatch", style: `background: ${index < 0 ? NO_COLOUR : classColour(index)}` }),
        element("button", { class: "link", type: "button", "aria-pressed": String(state.classFilter === index),
          click: () => toggleClass(index) }, name), " ", element("span", { class: "number" }, count.toLocaleString()));
      const entries = scheme.classes.map((name, index) => entry(index, name, counts[index]));
      if (counts.at(-1)) entries.push(entry(-1, "none", counts.at(-1)));
      parts.push(element("h2", {}, scheme.name), element("ul", { id: "legend" }, ...entries));
      if (state.classFilter !== null) parts.push(...documentList(matches));
    } else {
      const stops = [0, 0.25, 0.5, 0.75, 1].map(rampColour).join(", ");
      const end = (value) => element("span", {}, scheme.date ? formatDate(value) : Number(value.toPrecision(6)).toString());
      parts.push(element("h2", {}, scheme.name),
        element("div", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }),
        element("div", { class: "ends" }, end(scheme.low), end(scheme.high)));
    }
    parts.push(element("p", { class: "about" }, "Click a point to open its document. Circle points with the lasso to list "
      + "them. Click a class to show it alone. Scroll to zoom, drag to move."));
    panel.replaceChildren(...parts);
  }

  function documentList(rows) {
    return [
      element("p", {}, element("button", { class: "plain", type: "button", click: clearFilters }, "Clear")),
      element("ul", { id: "list" }, ...rows.slice(0, MAX_LISTED).map((row) => element("li", {}, documentLink(row)))),
      ...(rows.length > MAX_LISTED ? [element("p", { class: "about" }, `and ${(rows.length - MAX_LISTED).toLocaleString()} more`)] : []),
    ];
  }

  function showList(rows, qualifiers) {
    markDocuments([]);
    const words = state.query ? [`with “${state.query}”`] : [];
    panel.replaceChildren(element("h2", {}, [rows.length.toLocaleString(), ...qualifiers, ...words].join(" ")), ...documentList(rows));
  }

  // A text with the query's words marked.
  function markWords(text, query) {
    const nodes = [];
    let offset = 0;
    for (const { start, length } of query ? search.findWords(text, query) : []) {
      nodes.push(text.slice(offset, start), element("mark", {}, text.slice(start, start + length)));
      offset = start + length;
    }
    return [...nodes, text.slice(offset)];
  }

  function showHits(isSelected) {
    const result = search.rank(state.query, (row) => matchesFilters(row) && isSelected(row));
    const hits = result.hits.slice(0, state.hits);
    const score = (value, name, digits) => (value ?? null) === null ? [] : [`${name} ${value.toFixed(digits)}`];
    const scores = (hit) => [corpus.ids[hit.row], ...score(hit.cosine, "cosine", 3), ...score(hit.bm25, "BM25", 1)].join(" · ");
    const more = () => { state.hits += HITS; render(); };
    const notes = [...(result.unknown.length ? [`Not in any document: ${result.unknown.join(", ")}.`] : []),
      ...(hits.length ? [] : ["No document found: the query has no words of the documents."]),
      ...(corpus.model ? [] : ["Search is by words alone, because the page cannot use this model."])];
    const shown = new Set(hits.map((hit) => hit.row)), text = state.query.toLowerCase();
    const named = corpus.ids.flatMap((id, row) => (!shown.has(row) && matchesFilters(row) && isSelected(row)
      && `${id}\n${corpus.titles[row]}`.toLowerCase().includes(text) ? [row] : [])).slice(0, HITS);
    markDocuments(hits.map((hit) => hit.row));
    panel.dataset.query = state.query;
    panel.replaceChildren(
      element("p", {}, element("button", { class: "plain", type: "button", click: clearFilters }, "Clear")),
      ...notes.map((note) => element("p", { class: "about" }, note)),
      element("ol", { id: "hits" }, ...hits.map((hit) => element("li", {}, documentLink(hit.row),
        element("div", { class: "id" }, scores(hit)),
        element("p", {}, ...markWords(search.findPassage(corpus.texts[hit.row], result).replace(/\s+/g, " "), result))))),
      ...(named.length ? [element("h2", {}, "In an id or a title"),
        element("ul", { id: "list" }, ...named.map((row) => element("li", {}, documentLink(row))))] : []),
      ...(result.hits.length > hits.length ? [element("button", { class: "plain", type: "button", id: "more", click: more }, "More")] : []),
    );
  }

  // The text of a document, open at the passage that matches the query.
  function showText(row) {
    const text = corpus.texts[row], query = state.query && search ? search.analyseQuery(state.query) : null;
    const place = query ? text.indexOf(search.findPassage(text, query)) : 0;
    const lead = Math.max(text.lastIndexOf("\n", place), text.lastIndexOf(" ", place - MAX_LEAD)) + 1;
    const start = place > 2 * MAX_LEAD ? lead : 0;
    const summary = element("summary", {}, `${start.toLocaleString("en")} characters before`);
    const before = start ? [element("details", {}, summary, text.slice(0, start))] : [];
    return element("div", { class: "text", id: "document-text" }, ...before, ...markWords(text.slice(start), query));
  }

  function showDocument(row) {
    const neighbours = corpus.near[row];
    markDocuments([row, ...neighbours]);
    const values = corpus.columns.filter((column) => column.values[row] !== "");
    const topic = corpus.topics[row];
    const hiddenCharacters = corpus.lengths[row] - corpus.texts[row].length;
    const duplicates = corpus.groups.flatMap((group, index) => (group === corpus.groups[row] && index !== row ? [index] : []));
    const nearest = [element("h2", {}, "Nearest documents"),
      element("ul", { id: "near" }, ...neighbours.map((neighbour, rank) => element("li", {},
        element("span", { class: "number" }, corpus.cosines[row][rank].toFixed(2)), documentLink(neighbour))))];
    const text = [element("h2", {}, "Text"), showText(row),
      ...(hiddenCharacters > 0 ? [element("p", { class: "about" }, `… ${hiddenCharacters.toLocaleString()} more characters`)] : [])];
    panel.replaceChildren(
      element("p", {}, element("button", { class: "plain", type: "button", id: "back", click: () => history.back() }, "Back")),
      element("h2", { id: "document-title" }, corpus.titles[row]),
      element("dl", { class: "values" }, ...[["id", corpus.ids[row]], ["topic", topic < 0 ? "none" : corpus.topic_names[topic]],
        ...values.map((column) => [column.name, column.values[row]])].flatMap(([name, value]) =>
        [element("dt", {}, name), element("dd", {}, value)])),
      ...(duplicates.length ? [element("p", {}, "Near-duplicates: ", ...duplicates.slice(0, 10).flatMap((duplicate) => [documentLink(duplicate, corpus.ids[duplicate]), " "]))] : []),
      ...(state.query ? [...text, ...nearest] : [...nearest, ...text]),
    );
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true }); // the link that opened the document is gone
    if (panel.offsetTop > byId("plot").offsetTop + 50) panel.scrollIntoView(); // on narrow screens, the panel is below the map
  }

  // Actions. The open document is part of the address, so that the browser's Back button works.
  const openDocument = (row) => { location.hash = `document=${row}`; };

  function render() {
    const match = /^#document=(\d+)$/.exec(location.hash);
    state.openRow = match && Number(match[1]) < size ? Number(match[1]) : null;
    const matches = paintPoints();
    if (state.openRow !== null) showDocument(state.openRow);
    else if (state.query && search) showHits((row) => !state.selection || state.selection.includes(row));
    else if (state.selection) showList(state.selection.filter(matchesFilters), ["selected"]);
    else if (state.query) showList(matches, []);
    else showLegend(matches);
  }

  function closeDocument() { // an open document would hide the list
    if (state.openRow !== null) history.pushState(null, "", "#map");
    render();
  }

  function toggleClass(index) { state.classFilter = state.classFilter === index ? null : index; closeDocument(); }

  function clearFilters() {
    Object.assign(state, { query: "", classFilter: null, selection: null });
    byId("search").value = "";
    closeDocument();
  }

  function openNearest(event) {
    const { x_scale, y_scale } = figureView.frame;
    let nearest = null, minDistance = CLICK_PIXELS ** 2;
    for (let row = 0; row < size; row++) {
      const distance = (x_scale.compute(x[row]) - x_scale.compute(event.x)) ** 2 + (y_scale.compute(y[row]) - y_scale.compute(event.y)) ** 2;
      if (distance < minDistance && matchesFilters(row)) [nearest, minDistance] = [row, distance];
    }
    if (nearest !== null) openDocument(nearest);
  }

  let searchTimer;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(searchTimer);
    searchTimer = setTimeout(() => {
      Object.assign(state, { query: event.target.value.trim(), hits: HITS });
      closeDocument();
    }, 150);
  });
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const menu = byId("colour");
  menu.append(...schemes.map((scheme, index) => element("option", { value: index }, scheme.name)));
  menu.addEventListener("change", () => { Object.assign(state, { colour: Number(menu.value), classFilter: null }); closeDocument(); });
  document.body.addEventListener("click", (event) => {
    const target = event.target.closest("[data-topic]");
    if (target) {
      menu.value = "0";
      Object.assign(state, { colour: 0, classFilter: Number(target.dataset.topic) });
      closeDocument();
      byId("map").scrollIntoView();
    } else if (event.target.closest("a[href^='#document=']")) byId("map").scrollIntoView();
  });
  window.addEventListener("hashchange", render);
  darkScheme.addEventListener("change", applyTheme);
  figure.on_event("tap", openNearest);
  points.selected.properties.indices.change.connect(() => {
    const rows = [...points.selected.indices].filter(matchesFilters);
    state.selection = rows.length ? rows : null;
    closeDocument();
  });
  let frameRequest = 0;
  const placeNamesSoon = () => {
    cancelAnimationFrame(frameRequest);
    frameRequest = requestAnimationFrame(placeNames);
  };
  placeNames();
  for (const side of ["inner_width", "inner_height"]) figure.properties[side].change.connect(placeNamesSoon);
  for (const range of [figure.x_range, figure.y_range]) {
    for (const end of ["start", "end"]) range.properties[end].change.connect(placeNamesSoon);
  }
  figure.toolbar.tools.find((tool) => tool.type === "HoverTool").tooltips = TIP;
  findRenderer("names").glyph.setv({ text_font: "sans-serif", text_font_size: "12px", text_font_style: "bold",
    text_align: "center", text_baseline: "middle", background_fill_alpha: 0.75, padding: 3, border_radius: 3 });
  applyTheme();
  render();
  findRenderer("points").glyph.setv({ size: size > 5000 ? 4 : size > 300 ? 6 : 9, fill_color: { field: "fill" }, fill_alpha: { field: "alpha" } });
  document.documentElement.dataset.ready = "true";
})();
