// One small Plotly figure that follows light and dark. Its message: {"light": figure, "dark": figure}.
// A figure without a width of its own is as wide as its frame; one that is higher scrolls to what it is about.

function mountChart(root) {
  if (root.eagleChart) return root.eagleChart;
  let figures = null, fresh = false;
  const draw = () => {
    if (!figures || !root.offsetParent) return;
    if (!window.Plotly) { setTimeout(draw, 80); return; }
    const figure = figures[pageLook()];
    if (!figure) { window.Plotly.purge(root); return; }
    const { data, layout } = figure;
    window.Plotly.react(root, data, { width: root.clientWidth, ...layout }, PLOT_CONFIG);
    if (fresh && layout.meta) reveal(layout.meta.focus);
    fresh = false;
  };
  // The first of the heights, the root's, stays in sight.
  const reveal = focus => {
    const middle = (Math.min(...focus) + Math.max(...focus)) / 2, reach = root.clientHeight / 2 - 20;
    root.scrollTop = Math.max(focus[0] - reach, Math.min(focus[0] + reach, middle)) - root.clientHeight / 2;
    root.scrollLeft = 0;
  };
  new ResizeObserver(draw).observe(root);
  onLook(draw);
  root.eagleChart = { receive(message) { figures = message; fresh = true; draw(); } };
  return root.eagleChart;
}
