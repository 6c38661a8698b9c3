"use strict";
// The report of a training: its curves, in the colours of the page.
(async () => {
  const figures = [];
  for (const place of document.querySelectorAll(".curve")) {
    const item = JSON.parse(place.querySelector("script").textContent);
    const [view] = await Bokeh.embed.embed_item(item, place).then((manager) => [...manager.roots ?? manager]);
    figures.push(view.model);
  }

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const [ink, line, mark] = ["--ink", "--line", "--mark"].map((name) => style.getPropertyValue(name).trim());
    for (const figure of figures) {
      for (const axis of [...figure.below, ...figure.left]) {
        axis.setv({ axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: line,
          major_tick_line_color: line, minor_tick_line_color: null });
      }
      for (const each of figure.center) if ("grid_line_color" in each) each.setv({ grid_line_color: line });
      const [curve, points] = figure.renderers;
      curve.glyph.setv({ line_color: mark });
      points.glyph.setv({ line_color: mark, fill_color: mark });
    }
  }

  theme();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  document.documentElement.dataset.ready = "true";
})();
