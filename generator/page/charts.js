// Charts: what all charts of the page share, over Chart.js. Points have shapes as well as colours, intervals are drawn
// as bars, and arrow keys move over the points of a chart that has the focus.
"use strict";

/** Of any number of values; arguments of Math.min() lie on the stack. */
const least = values => values.reduce((x, y) => Math.min(x, y), Infinity), most = values => values.reduce((x, y) => Math.max(x, y), -Infinity);

const Charts = (() => {
  const live = [];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const shapes = ["circle", "triangle", "rect", "rectRot", "crossRot", "star"];

  /** The look of the i-th series of a chart. */
  function look(i, hollow = false) {
    const own = colour("s" + (i % 6)), shape = shapes[(i + Math.floor(i / 6)) % 6], drawn = shape === "crossRot" || shape === "star";
    return {
      pointStyle: shape, borderColor: own, backgroundColor: hollow ? "transparent" : own + (drawn ? "" : "b0"),
      pointRadius: 4, pointHoverRadius: 6, pointBorderWidth: 1.4, pointHitRadius: 6,
    };
  }

  /** The 95 % interval of a point: `low` to `high` along the axis that its dataset names as `interval`. */
  const intervals = {
    id: "intervals",
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea: area } = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.width, area.height);
      ctx.clip();
      chart.data.datasets.forEach((set, i) => {
        if (!set.interval || !chart.isDatasetVisible(i)) return;
        const scale = chart.scales[set.interval], flat = set.interval === "x";
        ctx.strokeStyle = set.borderColor;
        ctx.lineWidth = 1.5;
        chart.getDatasetMeta(i).data.forEach((element, j) => {
          const { low, high } = set.data[j];
          if (low === undefined) return;
          const from = scale.getPixelForValue(low), to = scale.getPixelForValue(high);
          ctx.beginPath();
          if (flat) {
            ctx.moveTo(from, element.y), ctx.lineTo(to, element.y);
            for (const end of [from, to]) ctx.moveTo(end, element.y - 4), ctx.lineTo(end, element.y + 4);
          } else {
            ctx.moveTo(element.x, from), ctx.lineTo(element.x, to);
          }
          ctx.stroke();
        });
      });
      ctx.restore();
    },
  };

  /** Lines {axis, at, text} and bands {axis, from, to} behind the data. */
  const marks = {
    id: "marks",
    beforeDraw(chart, _, options) {
      const { ctx, chartArea: area } = chart;
      ctx.save();
      for (const mark of options.list || []) {
        const scale = chart.scales[mark.axis], flat = mark.axis === "y";
        if (mark.from !== undefined) {
          const from = scale.getPixelForValue(mark.from), to = scale.getPixelForValue(mark.to);
          ctx.fillStyle = colour("band");
          if (flat) ctx.fillRect(area.left, to, area.width, from - to);
          else ctx.fillRect(from, area.top, to - from, area.height);
          continue;
        }
        const at = scale.getPixelForValue(mark.at);
        ctx.strokeStyle = ctx.fillStyle = colour("soft");
        ctx.setLineDash(mark.solid ? [] : [4, 4]);
        ctx.beginPath();
        if (flat) ctx.moveTo(area.left, at), ctx.lineTo(area.right, at);
        else ctx.moveTo(at, area.top), ctx.lineTo(at, area.bottom);
        ctx.stroke();
        if (!mark.text) continue;
        ctx.font = "11px system-ui, sans-serif";
        if (flat) ctx.fillText(mark.text, area.left + 4, at - 4, area.width - 8);
        else ctx.fillText(mark.text, at + 4, area.top + 10);
      }
      ctx.restore();
    },
  };

  function evenTicks(min, max) {
    const unit = 10 ** Math.floor(Math.log10((max - min) / 4)), step = [5, 2, 1].map(n => n * unit).find(s => (max - min) / s >= 4) || unit;
    const ticks = [];
    for (let n = Math.ceil(min / step); n * step <= max; ++n) ticks.push({ value: +(n * step).toPrecision(12) });
    return ticks;
  }
  /** Within a factor of five four to nine even steps of 1, 2 or 5; 1, 2, 5 within few decades, else powers of ten. */
  function logTicks(min, max) {
    const decades = Math.log10(max / min);
    if (decades <= .7) return evenTicks(min, max);
    const steps = decades > 3.2 ? [1] : decades > 1.6 ? [1, 3] : [1, 2, 3, 5];
    const ticks = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); ++e)
      for (const step of steps) {
        const value = step * 10 ** e;
        if (value >= min * .999 && value <= max * 1.001) ticks.push({ value });
      }
    return ticks;
  }

  function axis(title, options = {}) {
    const { ticks, log, ...rest } = options;
    return {
      type: log ? "logarithmic" : "linear",
      title: { display: true, text: title, color: colour("soft"), font: { size: 12 } },
      grid: { color: colour("grid") }, border: { color: colour("line") },
      ticks: { color: colour("soft"), font: { size: 11 }, maxRotation: 0, ...ticks },
      ...(log && { afterBuildTicks: scale => { scale.ticks = logTicks(scale.min, scale.max); } }),
      ...rest,
    };
  }
  /** A logarithmic axis over the values, with some room on both sides. */
  function logAxis(title, values, ticks) {
    const min = least(values), max = most(values);
    return axis(title, { log: true, min: min / 1.25, max: max * 1.25, ticks: { callback: ticks } });
  }

  /** Arrow keys walk over the points that have a text, dataset by dataset. */
  function walk(canvas, chart) {
    let at = -1;
    const points = () => chart.data.datasets.flatMap((set, datasetIndex) =>
      set.describe && chart.isDatasetVisible(datasetIndex) ? set.data.map((_, index) => ({ datasetIndex, index })) : []);
    canvas.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const all = points();
      if (!step || !all.length) return;
      event.preventDefault();
      at = (at + step + all.length + (at < 0 && step < 0 ? 1 : 0)) % all.length;
      const { datasetIndex, index } = all[at];
      const { x, y } = chart.getDatasetMeta(datasetIndex).data[index];
      chart.setActiveElements([all[at]]);
      chart.tooltip.setActiveElements([all[at]], { x, y });
      chart.update();
      document.getElementById("spoken").textContent = chart.data.datasets[datasetIndex].describe(index).join(", ");
    });
    canvas.addEventListener("blur", () => {
      chart.setActiveElements([]), chart.tooltip.setActiveElements([], { x: 0, y: 0 }), chart.update();
    });
  }

  function tooltip() {
    return {
      backgroundColor: colour("card"), titleColor: colour("ink"), bodyColor: colour("ink"), borderColor: colour("line"),
      borderWidth: 1, padding: 9, displayColors: false, bodyFont: { size: 12 }, filter: item => !!item.dataset.describe,
      callbacks: { title: () => "", label: item => item.dataset.describe(item.dataIndex) },
    };
  }

  /** Draws into `host`, a .plot in the document. A dataset's describe(index) gives the lines of a point's tooltip. */
  function draw(host, { label, datasets, x, y, marks: list = [], height = 300, legend = true }) {
    const canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    const count = datasets.reduce((sum, set) => sum + (set.describe ? set.data.length : 0), 0);
    canvas.setAttribute("aria-label", `${label}; ${count} points, arrow keys read them`);
    canvas.dataset.points = count;
    host.style.height = height + "px";
    host.replaceChildren(canvas);
    const chart = new Chart(canvas, {
      type: "scatter", data: { datasets }, plugins: [marks, intervals],
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, interaction: { mode: "nearest", intersect: true },
        scales: { x, y },
        plugins: {
          marks: { list }, tooltip: tooltip(),
          legend: { display: legend, position: "top", align: "start", labels: { usePointStyle: true, boxHeight: 7, color: colour("ink"), font: { size: 12 }, filter: item => !!item.text } },
        },
      },
    });
    walk(canvas, chart);
    live.push(chart);
    return chart;
  }

  function clear() {
    while (live.length) live.pop().destroy();
  }

  return { look, colour, axis, logAxis, logTicks, draw, clear };
})();
