"""The figures of pages: the map, whose points the page's script colours and labels, and curves of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.extras import require

_TIP = (
    '<div style="max-width: 22rem; white-space: normal; font: 13px/1.4 system-ui, sans-serif">'
    "<b>@title</b><div>@about</div></div>"
)


def bokeh(module: str) -> Any:
    """Import a module of bokeh."""
    return require(module, "explore", "the page")


def make_figure(places: NDArray[np.float32]) -> dict[str, Any]:
    """Make the figure as JSON for ``Bokeh.embed.embed_item``.

    Its renderers are called points, marks (around the document that is open and its nearest) and names (of topics); the
    script gives the points their colours and titles, and fills the others.
    """
    models = bokeh("bokeh.models")
    points = models.ColumnDataSource({"x": places[:, 0], "y": places[:, 1]})
    marks = models.ColumnDataSource({"x": [], "y": [], "size": []})
    names = models.ColumnDataSource({"x": [], "y": [], "text": [], "shift": []})
    figure = _clear_figure(
        sizing_mode="stretch_both",
        output_backend="webgl",  # where the browser has none, bokeh draws on a canvas
        match_aspect=True,
        toolbar_location="above",
    )
    figure.axis.visible = False
    figure.grid.visible = False
    drawn = figure.scatter("x", "y", source=points, size=6, color="gray", line_color=None, name="points")
    drawn.nonselection_glyph = drawn.selection_glyph = None  # the script decides what is pale
    figure.scatter("x", "y", source=marks, size="size", fill_color=None, line_width=2, name="marks")
    figure.text(
        "x",
        "y",
        "text",
        source=names,
        name="names",
        text_font_size="12px",
        text_font_style="bold",
        y_offset="shift",
        text_align="center",
        text_baseline="middle",
        background_fill_alpha=0.75,
        padding=3,
        border_radius=3,
    )
    wheel, lasso = models.WheelZoomTool(), models.LassoSelectTool(renderers=[drawn], continuous=False)
    hover = models.HoverTool(
        renderers=[drawn],
        tooltips=_TIP,
        point_policy="snap_to_data",
        attachment="horizontal",
        limit=1,  # in a large pile many points lie in one place, and what is said of them would hide the map
    )
    figure.add_tools(models.PanTool(), wheel, models.BoxZoomTool(), lasso, hover, models.ResetTool())
    figure.toolbar.active_scroll = wheel
    return _as_json(figure)


def make_curve(steps: Sequence[int], values: Sequence[float], name: str) -> dict[str, Any]:
    """Make the figure of what a training logged as JSON for ``Bokeh.embed.embed_item``."""
    models = bokeh("bokeh.models")
    source = models.ColumnDataSource({"x": list(steps), "y": list(values)})
    figure = _clear_figure(sizing_mode="stretch_width", height=280, x_axis_label="step", y_axis_label=name)
    figure.line("x", "y", source=source, line_width=2)
    drawn = figure.scatter("x", "y", source=source, size=5)
    tips = [("step", "@x"), (name, "@y{0.0000}")]
    hover = models.HoverTool(renderers=[drawn], tooltips=tips, mode="vline")
    figure.add_tools(hover, models.BoxZoomTool(), models.ResetTool())
    return _as_json(figure)


def _clear_figure(**options: Any) -> Any:
    """Make a figure through which the page shows, without tools."""
    clear = {"background_fill_alpha": 0, "border_fill_alpha": 0, "outline_line_color": None}
    return bokeh("bokeh.plotting").figure(tools="", **clear, **options)


def _as_json(figure: Any) -> dict[str, Any]:
    figure.toolbar.logo = None
    item: dict[str, Any] = bokeh("bokeh.embed").json_item(figure)
    return item
