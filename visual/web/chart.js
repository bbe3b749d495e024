// One small Plotly figure that follows light and dark. Its value is JSON text: {"light": figure, "dark": figure}.
// A figure without a width of its own is as wide as its frame.

function mountChart(root) {
  if (root.eagleChart) return root.eagleChart;
  let figures = null;
  const draw = () => {
    if (!figures || !root.offsetParent) return;
    if (!window.Plotly) { setTimeout(draw, 80); return; }
    const figure = figures[pageLook()];
    if (!figure) { window.Plotly.purge(root); return; }
    const { data, layout } = figure;
    window.Plotly.react(root, data, { width: root.clientWidth, ...layout }, PLOT_CONFIG);
  };
  new ResizeObserver(draw).observe(root);
  onLook(draw);
  root.eagleChart = { receive(text) { figures = JSON.parse(text); draw(); } };
  return root.eagleChart;
}
