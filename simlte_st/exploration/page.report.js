// Draw the curves of a training report in the page's colours.
(async () => {
  await loadBokeh();
  const figures = [];
  for (const container of document.querySelectorAll(".curve")) {
    const figureJson = JSON.parse(container.querySelector("script").textContent);
    const [figureView] = await Bokeh.embed.embed_item(figureJson, container).then((manager) => [...manager.roots ?? manager]);
    figures.push(figureView.model);
  }

  function applyTheme() {
    const style = getComputedStyle(document.documentElement);
    const [ink, line, mark] = ["--ink", "--line", "--mark"].map((name) => style.getPropertyValue(name).trim());
    for (const figure of figures) {
      for (const axis of [...figure.below, ...figure.left]) {
        axis.setv({ axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: line,
          major_tick_line_color: line, minor_tick_line_color: null });
      }
      for (const grid of figure.center) if ("grid_line_color" in grid) grid.setv({ grid_line_color: line });
      const [curve, points] = figure.renderers;
      curve.glyph.setv({ line_color: mark });
      points.glyph.setv({ line_color: mark, fill_color: mark });
    }
  }

  applyTheme();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  document.documentElement.dataset.ready = "true";
})();
