// A picture of dashboards/charts/time_chart.py in a page: as wide as its panel, telling what lies under the pointer,
// reporting what was dragged across or clicked, and leaving as a PNG.

const SHORTEST_DRAG_PX = 4;
const FINER = 2;
const LABEL_PX = 46;
const LINE_PX = 18;
const BUTTON_PX = 40;
const shown = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const place = parentElement.querySelector(".hw-live");
  if (!shown.has(place)) shown.set(place, begin(place));
  shown.get(place).show(data, setTriggerValue);
  return () => shown.get(place)?.end();
}

function begin(place) {
  const holder = place.querySelector(".hw-live-picture");
  const tip = place.querySelector(".hw-live-tip");
  const button = place.querySelector(".hw-live-png");
  let now, tell, svg, from = null, pressed = null, waiting = null;
  // What a legend of more than one line takes above the picture.
  let above = 0;
  const watched = new ResizeObserver(fit);

  function show(data, setTriggerValue) {
    tell = setTriggerValue;
    watched.observe(holder);
    if (from !== null) { waiting = data; return; }
    const isSame = now?.svg === data.svg;
    now = data;
    if (isSame) return;
    holder.innerHTML = data.svg;
    svg = holder.querySelector("svg");
    const [title, desc] = ["title", "desc"].map((kind) => svg.querySelector(`:scope > ${kind}`).textContent);
    svg.setAttribute("aria-label", `${title}. ${desc}`);
    button.setAttribute("aria-label", `Download as PNG: ${title}`);
    svg.querySelectorAll(":scope > title, :scope > desc").forEach((one) => one.remove());
    holder.style.cursor = data.does === "drag" ? "crosshair" : "pointer";
    tip.hidden = true;
    fit();
  }

  const wide = () => holder.clientWidth || now.wide;
  const across = (x) => Math.min(1, Math.max(0, (x - now.left) / (wide() - now.left - now.right)));
  const moment_ms = (x) => now.from_ms + across(x) * (now.to_ms - now.from_ms);
  const at = (event) => {
    const box = holder.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top - above];
  };
  const isInside = ([x, y]) => x >= now.left && x < wide() - now.right && y >= now.top && y < now.high - now.bottom;

  const stepAt = (x) => Math.min(now.steps.length - 1, Math.floor(across(x) * now.steps.length));
  const rowAt = (y) => Math.floor((y - now.top) / now.row);
  const cell = ([x, y]) => now.cells[rowAt(y)]?.[stepAt(x)];

  function fit() {
    if (!svg) return;
    const scale = Math.max(0.01, (wide() - now.left - now.right) / (now.wide - now.left - now.right));
    above = LINE_PX * (legend() - 1);
    svg.setAttribute("viewBox", `0 ${-above} ${wide()} ${now.high + above}`);
    svg.setAttribute("width", wide());
    svg.setAttribute("height", now.high + above);
    holder.style.height = `${now.high + above}px`;
    svg.querySelector(".hw-plane").setAttribute("transform", `translate(${now.left * (1 - scale)} 0) scale(${scale} 1)`);
    let last = -Infinity;
    for (const one of svg.querySelectorAll(".hw-moment")) {
      const away = (one.dataset.x - now.left) * (scale - 1), words = one.querySelector("text");
      one.setAttribute("transform", `translate(${away} 0)`);
      if (!words) continue;
      const x = Number(one.dataset.x) + away;
      words.style.visibility = x - last < LABEL_PX ? "hidden" : "";
      if (x - last >= LABEL_PX) last = x;
    }
  }

  // Put the names of the legend beside each other, on more lines upwards where there is no room; return how many lines.
  function legend() {
    let lines = 1, x = null;
    for (const key of svg.querySelectorAll(".hw-key")) {
      const begin = Number(key.dataset.x), length = Number(key.dataset.wide);
      x ??= begin;
      if (x > 0 && x + length > wide() - BUTTON_PX) [x, lines] = [0, lines + 1];
      key.setAttribute("transform", `translate(${x - begin} ${-LINE_PX * (lines - 1)})`);
      x += length;
    }
    return lines;
  }

  holder.onpointermove = (event) => {
    const [x, y] = at(event);
    if (from !== null) return stretch(from, x);
    const title = event.target.querySelector?.(":scope > title");
    // A tip of the browser's own would come late, and over this one.
    if (title) { event.target.dataset.told = title.textContent; title.remove(); }
    const step = stepAt(x);
    const here = isInside([x, y]) ? [now.steps[step], cell([x, y])] : [];
    const told = [...here, event.target.dataset?.told].filter(Boolean).join("\n");
    tip.hidden = !told;
    point(told && now.does === "drag" ? step : null);
    if (!told) return;
    tip.textContent = told;
    tip.style.left = `${Math.max(0, x + 14 + tip.offsetWidth > wide() ? x - 14 - tip.offsetWidth : x + 14)}px`;
    tip.style.top = `${y + above + 14}px`;
  };
  holder.onpointerleave = () => { tip.hidden = true; point(null); };
  holder.onpointerdown = (event) => {
    pressed = at(event);
    if (event.button !== 0 || now.does !== "drag" || !isInside(at(event))) return;
    event.preventDefault();
    from = at(event)[0];
    tip.hidden = true;
    point(null);
    holder.setPointerCapture(event.pointerId);
  };
  holder.onpointerup = (event) => {
    if (from === null) return;
    const ends = [from, at(event)[0]], range_ms = ends.map(moment_ms);
    letGo();
    if (Math.abs(ends[1] - ends[0]) >= SHORTEST_DRAG_PX) tell("dragged", range_ms);
  };
  holder.onpointercancel = letGo;
  holder.onclick = (event) => {
    const [x, y] = at(event);
    const isDrag = pressed && Math.hypot(x - pressed[0], y - pressed[1]) >= SHORTEST_DRAG_PX;
    if (now.does !== "click" || isDrag || !isInside([x, y]) || !cell([x, y])) return;
    tell("clicked", { at_ms: moment_ms(x), row: now.rows[rowAt(y)] });
  };
  button.onclick = () => save(svg, now, holder);

  function stretch(one, other) {
    shade("hw-drag", ...[one, other].map((x) => Math.min(wide() - now.right, Math.max(now.left, x))));
  }

  function point(step) {
    if (step === null) return svg?.querySelector(".hw-step")?.remove();
    const each = (wide() - now.left - now.right) / now.steps.length;
    shade("hw-step", now.left + step * each, now.left + (step + 1) * each);
  }

  function shade(kind, one, other) {
    let drawn = svg.querySelector(`.${kind}`);
    if (!drawn) {
      drawn = document.createElementNS(svg.namespaceURI, "rect");
      drawn.setAttribute("class", kind);
      svg.append(drawn);
    }
    drawn.setAttribute("x", Math.min(one, other));
    drawn.setAttribute("width", Math.abs(other - one));
    drawn.setAttribute("y", now.top);
    drawn.setAttribute("height", now.high - now.top - now.bottom);
  }

  function letGo() {
    from = null;
    svg.querySelector(".hw-drag")?.remove();
    const later = waiting;
    waiting = null;
    if (later) show(later, tell);
  }

  return { show, end: () => { if (!place.isConnected) watched.disconnect(); } };
}

async function save(svg, told, holder) {
  const copy = svg.cloneNode(true);
  copy.querySelectorAll(".hw-step, .hw-drag").forEach((one) => one.remove());
  const style = getComputedStyle(holder);
  const names = new Set(copy.outerHTML.match(/--hw-[a-z0-9]+/g).concat("--hw-text", "--hw-ground"));
  const colours = [...names].map((name) => `${name}:${style.getPropertyValue(name)};`).join("");
  const look = document.createElementNS(svg.namespaceURI, "style");
  look.textContent = `svg{${colours}font-family:${style.fontFamily};background:var(--hw-ground)}${told.styles}`;
  copy.prepend(look);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * FINER, image.height * FINER];
  const drawing = canvas.getContext("2d");
  drawing.scale(FINER, FINER);
  drawing.drawImage(image, 0, 0);
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = told.file;
  link.click();
}
