'use strict';
// The page of mayfly. It speaks commands of the Redis protocol, as JSON: see docs/page.md. All text enters the page by textContent.

const $ = (id) => document.getElementById(id);
const element = (name, attributes = {}, ...children) => {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
};
const setText = (e, text) => { if (e.textContent !== text) e.textContent = text; };
// sayError shows an error, or hides it.
function sayError(e, text) {
  setText(e, text);
  e.hidden = !text;
}

// ---------------------------------------------------------------- requests

let readonly = false;

async function post(path, body) {
  const r = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Mayfly-Page': '1'}, body: JSON.stringify(body)});
  if (r.status === 401 && path !== 'login') askPassword();
  if (!r.ok) throw new Error(explained((await r.text()).trim()));
  return r.status === 204 ? null : r.json();
}

// commandIn runs a command in a container and returns its reply. A word is a string, or {base64} of other bytes.
async function commandIn(container, ...words) {
  const path = container === '' ? 'command' : 'command?container=' + encodeURIComponent(container);
  const {reply, error} = await post(path, words.map((w) => typeof w === 'object' ? w : String(w)));
  if (error !== undefined) throw new Error(explained(error));
  return reply;
}
const command = (...words) => commandIn('', ...words);

let asked = []; // what the user may do, not answered yet

// offer shows an element if the user may run the command in the container, '' for none, and if it is wanted. It
// reports whether. What was offered for the same command stays until the answer is there. A document that has no id yet is offered whatever ids the user may write.
function offer(e, wanted, container, ...words) {
  const ask = {e, words: [container, ...words]};
  if (!wanted || String(e.asks?.words) !== String(ask.words)) e.hidden = true; // else it keeps the focus
  e.asks = ask;
  if (!wanted) return Promise.resolve(false);
  if (asked.push(ask) === 1) queueMicrotask(answerOffers);
  return new Promise((done) => { ask.done = done; });
}

async function answerOffers() {
  const list = asked;
  let reasons = [];
  asked = [];
  try {
    reasons = await post('may', list.map((ask) => ask.words));
  } catch { /* they stay hidden */ }
  list.forEach(({e, words, done}, i) => {
    const may = reasons[i] === '' || reasons[i] === 'key' && words[1] === 'DOC.PUT' && words.length === 3;
    if (e.asks === list[i]) e.hidden = !may;
    done(may);
  });
}

// explained says what to do about an error, where the server's own words do not.
function explained(error) {
  const [code, , leader] = error.split(' ');
  if (code === 'MOVED') return `This node is a follower. Only the leader makes changes: ${leader}.`;
  if (code === 'WRONGPASS') return 'That is not the password.';
  return error.replace(/^ERR /, '');
}

// fields makes an object of a reply that is a map: a flat list of names and values.
const fields = (list) => Object.fromEntries(Array.from({length: (list || []).length / 2}, (_, i) => [list[2 * i], list[2 * i + 1]]));

// ---------------------------------------------------------------- words and numbers

const count = (n) => Number(n).toLocaleString('en');
const plural = (n, one, many = one + 's') => `${count(n)} ${Number(n) === 1 ? one : many}`;
const short = (n) => n >= 10000 ? Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 1}).format(n) : count(n < 10 ? Number(n).toFixed(1) : Math.round(n));
function bytes(n) {
  for (const unit of ['B', 'KB', 'MB', 'GB', 'TB']) {
    if (n < 1000 || unit === 'TB') return `${n < 10 && unit !== 'B' ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1000;
  }
}
// span returns a time in seconds in its two largest units.
function span(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of [['y', 31536000], ['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]) {
    if (left >= size || (unit === 's' && !parts.length)) parts.push(`${Math.floor(left / size)} ${unit}`);
    else if (parts.length) break;
    left %= size;
  }
  return parts.slice(0, 2).join(' ');
}
// roughly returns a time in its largest unit, and in the next one if that is not too fine.
const roughly = (seconds) => { const text = span(seconds); return parseInt(text) >= 10 ? text.split(' ', 2).join(' ') : text; };
const micros = (n) => n < 1000 ? `${Math.round(n)} µs` : n < 1e6 ? `${(n / 1000).toFixed(1)} ms` : `${(n / 1e6).toFixed(1)} s`;
const ttlText = (ttl) => ttl === 'off' ? 'off' : Number(ttl) === -1 ? 'no end by default' : span(ttl);
// secondsOf returns what a person types for a ttl as the server takes it: 30 d are 2592000 seconds.
function secondsOf(text) {
  const [, n, unit] = /^(\d+)\s*(y|d|h|min|m|s)$/i.exec(text.trim()) || [];
  return unit ? String(n * {y: 31536000, d: 86400, h: 3600, min: 60, m: 60, s: 1}[unit.toLowerCase()]) : text.trim();
}
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const time = (seconds, options) => new Date(1000 * seconds).toLocaleString('en-GB', options);
const moment = (seconds) => time(seconds, {day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit'});
// visible escapes characters that cannot be seen or that turn the direction of the text: other ids could look the same.
const visible = (text) => text.replace(/[\p{Cc}\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
const nameOf = (id) => typeof id === 'string' ? visible(id) : `base64 ${id.base64}`; // of an item
const abbreviated = (text) => text.length > 60 ? [...text.slice(0, 120)].slice(0, 60).join('') + '…' : text;

// ---------------------------------------------------------------- live figures

let sample = null, previous = null, offset = 0; // offset: of the server's clock, ms
let source = null;
const serverNow = () => Date.now() + offset;

// isBare reports whether a container is one of Redis' 16 databases that is not in use.
const isBare = (c) => /^\d+$/.test(c.name) && c.ttl === -1 && c.documents + c.keys === 0;

let matching = ''; // a glob for the names of containers, '' for all

function connect() {
  let first = true;
  source?.close();
  source = new EventSource(matching ? `live?match=${encodeURIComponent(matching)}` : 'live');
  source.onmessage = (event) => {
    const next = JSON.parse(event.data);
    if (next.error) return lost(explained(next.error));
    next.containers = next.containers.filter((c) => !isBare(c));
    previous = sample;
    sample = next;
    offset = Number(next.info.server_time_usec || Date.now() * 1000) / 1000 - Date.now(); // who may not run INFO has no figures of it
    status('live', 'live');
    draw();
    if (first) refresh();
    first = false;
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(start, 2000);
    lost('connection lost, trying again');
  };
}
function status(state, text) {
  $('status').dataset.state = state;
  setText($('status'), text);
}
const lost = (text) => status('lost', text);

// rate returns how much figures of two samples grow in a second.
function rate(of) {
  const seconds = previous ? (sample.info.server_time_usec - previous.info.server_time_usec) / 1e6 : 0;
  return seconds > 0 ? Math.max(0, (of(sample) - of(previous)) / seconds) : 0;
}

function draw() {
  const {info} = sample;
  if (info.mayfly_version) setText($('server'), `${info.mayfly_version}, up ${span(info.uptime_in_seconds)}${info.cluster_enabled ? ', ' + (info.role === 'master' ? 'leader' : 'follower') : ''}${readonly ? ', read-only' : ''}`);
  setText($('passing'), info.clock === 'manual' ? 'For tests: all data goes with this server, and its time stands still between CLOCK commands.' : info.ephemeral ? 'For tests: all data goes with this server.' : '');
  $('passing').hidden = !info.ephemeral;
  drawTiles(info);
  for (const section of document.querySelectorAll('.filled')) section.hidden = sample.containers.length === 0 && !matching;
  $('hint').hidden = sample.containers.length > 0 || matching;
  setText($('hint-commands'), `$ redis-cli -p ${info.tcp_port || 6379}\n> CONTAINER.CREATE sessions TTL 3600\n> DOC.PUT sessions ann '{"user":"ann"}'\n> DOC.EXPLAIN sessions ann`);
  const list = sample.containers.map((c) => [c.name, c.name]), logs = sample.containers.filter((c) => c.log).map((c) => [c.name, c.name]);
  options($('deaths-container'), [['*', 'all'], ...list]);
  const listed = options($('documents-container'), list);
  options($('log-container'), logs);
  $('log').hidden = logs.length === 0;
  followLog();
  drawContainers();
  if (listed && list.length > 0) offerContainer();
  if (listed && found === null && list.length > 0) find();
}

function drawTiles(info) {
  const next = Math.min(...sample.containers.map((c) => c.next || Infinity));
  const lag = info.oldest_dead_ms, commit = info.commit_last_usec;
  const deaths = rate((s) => s.info.expired_keys);
  tiles([
    ['living', short(info['keys.count'] ?? sum(sample.containers.map((c) => c.documents + c.keys)))],
    ['writes/s', short(rate((s) => s.writes)), rate((s) => s.writes)],
    ['reads/s', short(rate((s) => s.reads)), rate((s) => s.reads)],
    ['deaths/s', short(deaths), deaths],
    ['next death', Number.isFinite(next) ? roughly((next - serverNow()) / 1000) : 'none'],
    lag === undefined ? ['dead, not purged', `${Number(info.expired_stale_perc || 0).toFixed(1)} %`] : ['purge lags by', lag < 1000 ? `${lag} ms` : roughly(lag / 1000), undefined, lag > 60000],
    commit === undefined ? ['commits/s', short(rate((s) => s.info.journal_commits))] : ['last commit', micros(commit), undefined, commit > 1e6],
    ['memory', bytes(info['total.allocated'] ?? sum(sample.containers.map((c) => c.bytes)))],
  ]);
}

const history = new Map(); // of figures, by label: the last half minute

function tiles(list) {
  const box = $('tiles');
  while (box.children.length < list.length) box.append(element('div', {}, element('b'), element('span', {class: 'quiet'}), element('i')));
  list.forEach(([label, value, figure, alert], i) => {
    const [b, caption, line] = box.children[i].children;
    setText(b, value);
    setText(caption, label);
    box.children[i].classList.toggle('alert', Boolean(alert));
    if (figure === undefined) return;
    history.set(label, [...(history.get(label) || Array(30).fill(0)), figure].slice(-30));
    spark(line, history.get(label));
  });
}

// options fills a select, and keeps what is selected. It reports whether the list has changed.
function options(select, list) {
  if (select.dataset.list === JSON.stringify(list)) return false;
  const value = select.value;
  select.dataset.list = JSON.stringify(list);
  select.replaceChildren(...list.map(([v, text]) => element('option', {value: v}, text)));
  if (list.some(([v]) => v === value)) select.value = value;
  return true;
}

// ---------------------------------------------------------------- containers

const outlooks = new Map(); // by container: the deaths of the next half hour, a number for each 20 s; the first of them have begun
const sum = (list) => list.reduce((a, b) => a + b, 0);
const columns = ['Name', 'Default', 'Living', 'Bytes', 'Next death', 'Next minute', 'Next half hour', ''];

// fillRows gives a table a row for each element of a list. Rows that stay keep the focus.
function fillRows(body, list, key, make, fill) {
  const rows = new Map([...body.rows].map((r) => [r.dataset.name, r]));
  list.forEach((e, i) => {
    const name = key(e), row = rows.get(name) || make(e);
    row.dataset.name = name;
    rows.delete(name);
    fill(row.cells, e);
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
  });
  for (const row of rows.values()) row.remove();
}

function drawContainers() {
  fillRows($('containers-body'), sample.containers, (c) => c.name, (c) => containerRow(c.name), (cells, c) => {
    const outlook = outlooks.get(c.name);
    setText(cells[1], ttlText(c.ttl) + (c.ttlmode === 'lenient' ? ', lenient' : '') + (c.hold ? ', on hold' : ''));
    setText(cells[2], count(c.documents + c.keys));
    setText(cells[3], bytes(c.bytes));
    setText(cells[4], c.next ? 'in ' + span((c.next - serverNow()) / 1000) : 'none');
    setText(cells[5], outlook ? count(sum(outlook.slice(0, 4))) : '');
    spark(cells[6], outlook && Array.from({length: 30}, (_, i) => sum(outlook.slice(3 * i, 3 * i + 3))));
  });
  const none = sample.containers.length === 0;
  $('containers-form').hidden = !sample.more && !matching;
  $('containers-more').hidden = !sample.more && !none;
  setText($('containers-more'), none ? 'No container in use has such a name.' : `and ${plural(sample.more, 'more container')}`);
}

$('containers-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('containers-find').value.trim();
  matching = !text || /[*?[\\]/.test(text) ? text : `*${text}*`;
  connect();
});

function containerRow(name) {
  const cells = columns.map((label, i) => element('td', {'data-label': label, class: i === 2 || i === 3 || i === 5 ? 'n' : ''}));
  cells[0].title = name;
  cells[0].append(element('button', {type: 'button', class: 'link', 'aria-label': `Documents of ${name}`, onclick: () => openContainer(name)}, name));
  const change = element('button', {type: 'button', 'aria-label': `Change the default of ${name}`, onclick: () => openChange(name)}, 'Change');
  offer(change, !readonly, '', 'CONTAINER.SET', name, 'TTL', '-1');
  cells[7].append(change);
  return element('tr', {}, ...cells);
}

// spark draws numbers as small bars.
function spark(box, list) {
  const key = JSON.stringify(list || []);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  if (!list) return box.replaceChildren();
  const top = Math.max(1, ...list), ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  for (const [k, v] of Object.entries({class: 'spark', viewBox: `0 0 ${list.length * 4} 22`, preserveAspectRatio: 'none', 'aria-hidden': 'true'})) svg.setAttribute(k, v);
  list.forEach((n, i) => {
    const bar = document.createElementNS(ns, 'rect'), height = n ? Math.max(1.5, 20 * n / top) : 0.7;
    for (const [k, v] of Object.entries({x: i * 4, y: 22 - height, width: 3, height})) bar.setAttribute(k, v);
    svg.append(bar);
  });
  box.replaceChildren(svg);
}

async function refreshOutlooks() {
  for (const c of sample.containers.slice(0, 50)) {
    const f = fields(await command('CONTAINER.FORECAST', c.name, 'EVERY', 20, 'BUCKETS', 91));
    outlooks.set(c.name, f.buckets.map(([, items]) => items));
  }
}

// ---------------------------------------------------------------- what dies when

const ranges = [['1 h', 60, 61], ['24 h', 3600, 25], ['30 d', 86400, 31], ['1 y', 14 * 86400, 27]]; // name, seconds a bar, bars
let range = ranges[1];
const charts = new Map(); // by the id of their boxes: {chart, state, width, redraw}
const redraw = () => { for (const {redraw} of [...charts.values()]) redraw(); };

for (const r of ranges) {
  $('ranges').append(element('button', {type: 'button', 'aria-pressed': String(r === range), onclick: (event) => {
    range = r;
    for (const b of $('ranges').children) b.setAttribute('aria-pressed', String(b === event.target));
    refreshDeaths().catch((e) => lost(e.message));
  }}, r[0]));
}
$('deaths-container').addEventListener('change', () => refreshDeaths().catch((e) => lost(e.message)));

async function refreshDeaths() {
  const asked = range, f = fields(await command('CONTAINER.FORECAST', $('deaths-container').value, 'EVERY', asked[1], 'BUCKETS', asked[2]));
  if (asked !== range) return; // another one was chosen meanwhile
  const total = sum(f.buckets.map((b) => b[1])), end = f.buckets.at(-1)[0] / 1000 + f.every;
  bars($('deaths-chart'), $('deaths-bar'), f);
  setText($('deaths-text'), `${plural(total, 'item dies', 'items die')} until ${moment(end).slice(0, -3)}, ${count(f.later[0])} later, ${count(f.never[0])} never.`);
}

// tick returns the text of a moment on the axis, as precise as its distance to the next one.
function tick(seconds, distance) {
  if (distance < 60) return time(seconds, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
  if (distance < 86400) return time(seconds, {hour: '2-digit', minute: '2-digit'}) === '00:00' ? time(seconds, {day: 'numeric', month: 'short'}) : time(seconds, {hour: '2-digit', minute: '2-digit'});
  return time(seconds, distance < 28 * 86400 ? {day: 'numeric', month: 'short'} : {month: 'short', year: '2-digit'});
}

// bars draws the buckets of a forecast: what dies by a ttl of its own stands below the rest. What a new default would kill is a
// red bar before them. The text beside the legend is that of the bar under the pointer. A chart stays, with new figures, unless
// its size or colors change.
function bars(box, text, f, killed = 0, anew = false) {
  const own = f.own ? f.own.map(([n]) => n) : null, times = f.buckets.map(([from]) => from / 1000);
  const data = [times, f.buckets.map(([, n]) => n), times.map((_, i) => own ? own[i] : null), times.map(() => null)];
  if (killed) [times[0] - f.every, null, null, killed].forEach((n, i) => { data[i] = [n, ...data[i]]; });
  box.parentNode.classList.toggle('split', own !== null);
  const width = Math.max(240, box.clientWidth), old = charts.get(box.id), state = {data, own, every: f.every};
  if (old && !anew && old.width === width) {
    Object.assign(old.state, state);
    old.redraw = () => bars(box, text, f, killed, true);
    return old.chart.setData(data);
  }
  old?.chart.destroy();
  setText(text, '');
  const bar = (name) => ({fill: color(name), width: 0, paths: uPlot.paths.bars({size: [0.86], align: 1, radius: 0.06}), points: {show: false}});
  const axis = {stroke: color('--quiet'), font: '12px system-ui, sans-serif', grid: {stroke: color('--line'), width: 1}, ticks: {show: false}};
  const chart = new uPlot({
    width, height: 190, legend: {show: false}, padding: [8, 26, 0, 0], cursor: {drag: {x: false, y: false}, y: false, points: {show: false}},
    series: [{}, bar('--accent'), bar('--own'), bar('--danger')],
    axes: [{...axis, size: 30, space: 74, grid: {show: false}, values: (_, ticks, __, ___, distance) => ticks.map((t) => tick(t, distance))},
      {...axis, size: 48, space: 36, values: (_, ticks) => ticks.map((t) => t % 1 ? '' : short(t))}],
    scales: {x: {range: () => [state.data[0][0], state.data[0].at(-1) + state.every]}, y: {range: (_, __, high) => [0, Math.max(1, high * 1.05)]}},
    hooks: {setCursor: [(u) => setText(text, describeBar(state, u.cursor.left < 0 ? -1 : u.posToVal(u.cursor.left, 'x')))]},
  }, data, box);
  charts.set(box.id, {chart, state, width, redraw: () => bars(box, text, f, killed, true)});
}

// describeBar returns the text of the bar at a moment.
function describeBar({data, own, every}, at) {
  const i = data[0].findLastIndex((t) => t <= at);
  if (i < 0) return '';
  if (data[3][i]) return `${plural(data[3][i], 'item')} at once`;
  return `from ${moment(data[0][i]).slice(0, every < 60 ? undefined : -3)}: ${plural(data[1][i], 'item')}${own ? `, ${count(data[2][i])} by a ttl of their own` : ''}`;
}

// ---------------------------------------------------------------- documents

let cursor = '0', found = null; // what is listed: {container, pattern}
let shown = null; // {container, id, document}
let showing = 0; // how often an item was opened: one that comes late replaces none that was opened later

const attempt = (f, say) => f().catch((e) => { say.textContent = e.message; });

$('documents-form').addEventListener('submit', (event) => { event.preventDefault(); find(); });
// offerContainer shows what makes something new in the chosen container.
function offerContainer() {
  const name = $('documents-container').value, wanted = !readonly && name !== '';
  offer($('documents-new'), wanted, '', 'DOC.PUT', name);
  offer($('indexes-form'), wanted, '', 'INDEX.CREATE', name, '/a');
}

$('documents-container').addEventListener('change', () => {
  offerContainer();
  $('documents-find').value = '';
  shows(false);
  find();
  setText($('indexes-text'), '');
  attempt(refreshIndexes, $('indexes-text'));
});
$('documents-next').addEventListener('click', () => attempt(found.more, $('documents-text')));

function openContainer(name) {
  $('documents-container').value = name;
  $('documents-container').dispatchEvent(new Event('change'));
  $('documents-find').focus();
}

function find() {
  const text = $('documents-find').value.trim(), container = $('documents-container').value, asksFor = /^(select|where)\s/i.test(text);
  found = {container, text, pattern: text || '*', more: asksFor ? query : scan};
  cursor = '0';
  $('documents-list').replaceChildren();
  $('documents-next').hidden = true;
  return attempt(text && !asksFor && !/[*?[\\]/.test(text) ? one : found.more, $('documents-text'));
}

// one opens the item whose id is looked for, without a look at others.
async function one() {
  const asked = found, {container, text} = asked, there = await commandIn(container, 'EXISTS', text);
  if (asked !== found) return; // something else is looked for meanwhile
  setText($('documents-text'), there ? '1 id' : 'Nothing here has this id. A pattern has *, as in user:*.');
  if (!there) return;
  listItems([[nameOf(text), () => show(container, text)]]);
  await show(container, text);
}

// scan lists some more ids. Where few match it looks at several parts of the container.
async function scan() {
  const asked = found;
  let part = 200; // ids at a time, fewer where they are too long for a reply
  for (let parts = 0, listed = 0; parts < 20 && listed < 100; parts++) {
    let next, ids;
    try {
      [next, ids] = await commandIn(asked.container, 'SCAN', cursor, 'MATCH', asked.pattern, 'COUNT', part);
    } catch (e) {
      if (part === 1 || !e.message.startsWith('the reply is longer than')) throw e;
      part = Math.ceil(part / 20);
      continue;
    }
    if (asked !== found) return; // something else is looked for meanwhile
    listed += ids.length;
    listItems(ids.map((id) => [nameOf(id), () => show(asked.container, id)]));
    cursor = next;
    if (cursor === '0') break;
  }
  $('documents-next').hidden = cursor === '0';
  const n = $('documents-list').children.length;
  setText($('documents-text'), n ? plural(n, 'id') + (cursor === '0' ? '' : ' so far') : cursor === '0' ? 'Nothing here has such an id.' : 'None yet, look for more.');
}

// query lists some more results. Those that are documents open them.
async function query() {
  const asked = found, words = ['DOC.QUERY', asked.container, asked.text, 'COUNT', 200, ...(cursor === '0' ? [] : ['CURSOR', cursor])];
  let reply;
  try {
    reply = await command(...words, ...(asked.ids === false ? [] : ['WITHIDS']));
  } catch (e) {
    if (!/^WITHIDS is legal for documents only/.test(e.message)) throw e;
    asked.ids = false;
    reply = await command(...words);
  }
  if (asked !== found) return; // something else is looked for meanwhile
  const [next, rows] = reply, list = asked.ids === false ? rows.map((row) => [null, row]) : Array.from({length: rows.length / 2}, (_, i) => rows.slice(2 * i, 2 * i + 2));
  listItems(list.map(([id, row]) => {
    const result = typeof row === 'string' ? row : JSON.stringify(row);
    return id === null ? [result, async () => open('Result', '', pretty(result))] : [`${abbreviated(nameOf(id))}: ${result}`, () => show(asked.container, id)];
  }));
  cursor = next;
  $('documents-next').hidden = cursor === '0';
  setText($('documents-text'), plural($('documents-list').children.length, 'result') + (cursor === '0' ? '' : ' so far'));
}

function listItems(list) {
  $('documents-list').append(...list.map(([text, choose]) => element('li', {}, element('button', {type: 'button', onclick: (event) => {
    for (const b of $('documents-list').querySelectorAll('[aria-current]')) b.removeAttribute('aria-current');
    event.currentTarget.setAttribute('aria-current', 'true');
    setText($('document-done'), '');
    attempt(choose, $('documents-text'));
  }}, element('span', {}, text)))));
}

// tokens returns the parts of JSON, null of all else. JSON.parse would round large numbers and reorder members.
function tokens(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
}
const compact = (text) => tokens(text)?.join('') ?? text;

// pretty indents JSON. All else stays as it is.
function pretty(text) {
  let line = '\n', open = false; // open: the last token is a bracket that opens
  return tokens(text)?.map((token) => {
    const closes = token === '}' || token === ']', first = open;
    open = token === '{' || token === '[';
    if (closes) line = line.slice(0, -2);
    const before = closes ? (first ? '' : line) : first ? line : '';
    if (open) line += '  ';
    return before + token + (token === ',' ? line : token === ':' ? ' ' : '');
  }).join('') ?? text;
}

// shows shows the open document, or what to do for one.
function shows(one) {
  showing++;
  $('document').hidden = !one;
  $('document-none').hidden = one;
}

function open(title, why, text, actions = false) {
  shows(true);
  $('document-actions').hidden = readonly || !actions;
  setText($('document-id'), title);
  setText($('document-why'), why);
  setText($('document-text'), text);
}

// Of a collection the page shows this many elements.
const mostElements = 200;

// collections are how elements are counted and read, by type, and a line of text for each.
const collections = {
  hash: {count: 'HLEN', read: (id) => ['HSCAN', id, 0, 'COUNT', mostElements], of: ([, list]) => list, pairs: true, line: (field, value) => `${nameOf(field)}: ${nameOf(value)}`},
  set: {count: 'SCARD', read: (id) => ['SSCAN', id, 0, 'COUNT', mostElements], of: ([, list]) => list, line: (member) => nameOf(member)},
  zset: {count: 'ZCARD', read: (id) => ['ZRANGE', id, 0, mostElements - 1, 'WITHSCORES'], pairs: true, line: (member, score) => `${score}  ${nameOf(member)}`},
  list: {count: 'LLEN', read: (id) => ['LRANGE', id, 0, mostElements - 1], line: (member) => nameOf(member)},
};

// elements returns the text of a collection: its number of elements, and some of them.
async function elements(container, type, id) {
  const {count, read, of = (list) => list, pairs, line} = collections[type];
  const [n, reply] = await Promise.all([commandIn(container, count, id), commandIn(container, ...read(id))]);
  const list = of(reply), lines = [];
  for (let i = 0; i < list.length && lines.length < mostElements; i += pairs ? 2 : 1) lines.push(line(list[i], list[i + 1]));
  if (n > lines.length) lines.push(`… and ${short(n - lines.length)} more`);
  return `${type} of ${plural(n, 'element')}\n\n${lines.join('\n')}`;
}

// show opens an item: a document, a plain key or a collection.
async function show(container, id) {
  const turn = ++showing;
  const [type, why] = await Promise.all([commandIn(container, 'TYPE', id), command('DOC.EXPLAIN', container, id).then(fields)]);
  const document = type === 'ReJSON-RL', gone = type === 'none';
  const text = gone ? null : document ? await command('DOC.GET', container, id) : collections[type] ? await elements(container, type, id) : await commandIn(container, 'GET', id);
  if (turn !== showing) return;
  shown = {container, id, document};
  const dies = why.expiresat > 0 && why.state === 'alive' ? `Dies in ${span((why.expiresat - serverNow()) / 1000)}. ` : '';
  open(nameOf(id), dies + why.why.replace(/^(dies|never dies)/, 'It $1'), text === null ? 'There is no such item.' : typeof text !== 'string' ? `${nameOf(text)}\n(no UTF-8)` : document ? pretty(text) : text, text !== null);
  offer($('document-touch'), document, '', 'DOC.TOUCH', container, id);
  offer($('document-edit'), document && typeof text === 'string', '', 'DOC.PUT', container, id, '{}');
  if (document) offer($('document-ttl-form'), true, '', 'DOC.SETTTL', container, id, '1');
  else offer($('document-ttl-form'), true, container, 'EXPIRE', id, '1');
  offer($('document-delete'), true, container, 'DEL', id);
}

// change changes the open item. It reports whether no error came. 0 says that the item is gone, but of PERSIST, which says it of what has no end too.
const change = (done, ...words) => attempt(async () => {
  const reply = await commandIn(shown.container, ...words);
  await show(shown.container, shown.id);
  setText($('document-done'), reply === 0 && words[0] !== 'PERSIST' ? 'It was gone already.' : done);
  return true;
}, $('document-done'));
$('document-touch').addEventListener('click', () => change('Touched: it lives as long again.', 'DOC.TOUCH', shown.container, shown.id));
$('document-ttl-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const ttl = secondsOf($('document-ttl').value), {container, id, document} = shown;
  if (document) return change('Its ttl is set.', 'DOC.SETTTL', container, id, ttl);
  if (ttl === '-1') return change('It lives until its container says otherwise.', 'PERSIST', id);
  change('Its ttl is set.', 'EXPIRE', id, ttl);
});
sure($('document-delete'), 'Delete it for ever?', async () => {
  const {container, id} = shown, deleted = await change('Deleted.', 'DEL', id);
  if (deleted && found?.container === container) for (const b of $('documents-list').querySelectorAll('[aria-current]')) b.parentNode.remove();
});

// sure makes a button ask once more, on itself, before it acts.
function sure(button, question, act) {
  const text = button.textContent;
  const calm = () => {
    delete button.dataset.sure;
    setText(button, text);
  };
  button.addEventListener('click', () => {
    if (button.dataset.sure) {
      calm();
      return act();
    }
    button.dataset.sure = '1';
    setText(button, question);
  });
  button.addEventListener('blur', calm);
}

// ---------------------------------------------------------------- writing a document

let editing = null; // {container, id, etag}: id and etag are null for a new document

$('documents-new').addEventListener('click', () => openEditor({container: $('documents-container').value, id: null, etag: null}, '{\n  \n}'));
$('document-edit').addEventListener('click', () => attempt(async () => {
  const {container, id} = shown, {etag} = fields(await command('DOC.META', container, id)); // before the text: a write between the two is noticed
  const text = await command('DOC.GET', container, id);
  if (etag && typeof text === 'string') openEditor({container, id, etag}, pretty(text));
  else await show(container, id); // it is gone
}, $('document-done')));
$('edit-cancel').addEventListener('click', () => $('edit').close());

function openEditor(what, text) {
  editing = what;
  setText($('edit-title'), `${what.id === null ? 'New document' : 'Document'} in ${what.container}`);
  $('edit-id').value = what.id === null ? '' : nameOf(what.id);
  $('edit-id').readOnly = what.id !== null;
  $('edit-ttl').value = '';
  $('edit-text').value = text;
  sayError($('edit-error'), '');
  $('edit').showModal();
  if (what.id !== null) $('edit-text').focus();
}

$('edit-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const asked = editing, {container, etag} = asked, id = asked.id ?? $('edit-id').value, ttl = secondsOf($('edit-ttl').value);
  $('edit-save').disabled = true;
  try {
    const saved = await command('DOC.PUT', container, id, compact($('edit-text').value), ...(ttl ? ['TTL', ttl] : []), ...(etag ? ['IFMATCH', etag] : ['NX']));
    if (saved === null) throw new Error(etag ? 'This document has been changed or deleted, or has died, since you opened it. Nothing is saved.' : 'There is a document with this id already. Nothing is saved.');
    if (editing === asked) $('edit').close();
    if (!etag && found?.container === container) listItems([[nameOf(id), () => show(container, id)]]);
    attempt(async () => {
      await show(container, id);
      setText($('document-done'), 'Saved.');
    }, $('document-done'));
  } catch (e) {
    if (editing === asked) sayError($('edit-error'), e.message);
  }
  $('edit-save').disabled = false;
});

// ---------------------------------------------------------------- indexes

const indexColumns = ['Paths', 'State', 'Entries', 'Bytes', 'Uses', ''];
const saysIndex = (i) => visible(i.paths.join(' ')) + (i.geo ? ' GEO' : '');
const wordsOf = (i) => [...i.paths, ...(i.geo ? ['GEO'] : [])];

async function refreshIndexes() {
  if (!$('indexes').open) return;
  const name = $('documents-container').value, list = (await command('INDEX.LIST', name)).map(fields);
  if (name !== $('documents-container').value) return; // another one was chosen meanwhile
  fillRows($('indexes-body'), list, (i) => JSON.stringify([name, ...wordsOf(i)]), (i) => indexRow(name, i), (cells, i) => {
    setText(cells[1], i.state === 'ready' ? 'ready' : `${i.state}, ${i.percent} %`);
    setText(cells[2], count(i.entries));
    setText(cells[3], bytes(i.bytes));
    setText(cells[4], count(i.uses));
  });
}

function indexRow(name, index) {
  const cells = indexColumns.map((label, i) => element('td', {'data-label': label, class: i > 1 && i < 5 ? 'n' : ''}));
  cells[0].append(saysIndex(index));
  const drop = element('button', {type: 'button', class: 'danger', 'aria-label': `Drop the index ${saysIndex(index)}`}, 'Drop');
  offer(drop, !readonly, '', 'INDEX.DROP', name, ...wordsOf(index));
  sure(drop, 'Drop it?', () => changeIndexes('Dropped.', 'INDEX.DROP', name, ...wordsOf(index)));
  cells[5].append(drop);
  return element('tr', {}, ...cells);
}

const changeIndexes = (done, ...words) => attempt(async () => {
  await command(...words);
  setText($('indexes-text'), done);
  await refreshIndexes();
  return true;
}, $('indexes-text'));
$('indexes').addEventListener('toggle', () => attempt(refreshIndexes, $('indexes-text')));
$('indexes-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const paths = $('indexes-paths').value.trim().split(/\s+(?=\/|GEO$)/i); // names may have spaces
  if (await changeIndexes('Created.', 'INDEX.CREATE', $('documents-container').value, ...paths)) $('indexes-paths').value = '';
});

// ---------------------------------------------------------------- log of deaths

let logged = ''; // the state of the log that is shown

// followLog shows the last deaths anew when a sample tells that there are others.
async function followLog() {
  const name = $('log-container').value, state = JSON.stringify([name, sample.containers.find((c) => c.name === name)?.log]);
  if ($('log').hidden || state === logged) return;
  logged = state;
  const entries = await command('XREVRANGE', `__keyevent@${name}__:expired`, '+', '-', 'COUNT', 20).catch((e) => {
    logged = ''; // the next sample tries again
    lost(e.message);
  });
  if (state !== logged) return; // there are others meanwhile
  $('log-body').replaceChildren(...entries.map(([, list]) => {
    const e = fields(list), by = {document: 'its own end', container: 'the default', change: 'a changed default'};
    return element('tr', {}, element('td', {'data-label': 'Died'}, moment(Number(e.at) / 1000)), element('td', {'data-label': 'Id', class: 'id', title: nameOf(e.id)}, nameOf(e.id)),
      element('td', {'data-label': 'By'}, by[e.cause] || e.cause), element('td', {'data-label': 'Text', class: 'clip'}, nameOf(e.doc ?? e.value ?? 'not kept')));
  }));
  setText($('log-text'), entries.length ? '' : 'Nothing has died here since the log began.');
}
$('log-container').addEventListener('change', followLog);

// ---------------------------------------------------------------- changing a default

let changing = null; // {name, etag, ttl, plan}: etag of the settings that the preview is for
const longest = 10 * 365 * 86400;
const ofSlider = (v) => Math.max(1, Math.round(Math.pow(longest, v / 1000)));
const toSlider = (seconds) => Math.round(1000 * Math.log(Math.max(1, seconds)) / Math.log(longest));

function openChange(name) {
  const c = sample.containers.find((c) => c.name === name);
  changing = {name, etag: c.etag, plan: null};
  setText($('change-name'), name);
  $('change-ttl').value = c.ttl;
  $('change-slider').value = Number(c.ttl) > 0 ? toSlider(c.ttl) : 1000;
  $('change-typed').value = '';
  $('change-confirm').hidden = $('change-undo').hidden = true;
  for (const id of ['change-before', 'change-text', 'change-sample']) setText($(id), '');
  $('change').showModal();
  $('change-ttl').select();
  preview();
  attempt(() => offerUndo(name), $('change-error'));
  attempt(() => sayBefore(changing, c.hold), $('change-before'));
}

// sayBefore says what to know before a change: that it is refused, or whether it can be taken back.
async function sayBefore(asked, hold) {
  if (hold) return setText($('change-before'), `On hold: ${hold}. Nothing dies, and a change is refused until the hold ends.`);
  const [, seconds] = await command('CONFIG', 'GET', 'undo-window');
  if (changing !== asked) return; // another one is open
  setText($('change-before'), Number(seconds) > 0 ? `A change can be taken back for ${span(seconds)}.` : 'A change cannot be taken back: undo-window is 0.');
}

let previewTimer = 0, previews = 0;
// later previews what is typed, once it is. Until then nothing can be applied: the preview would be of something else.
function later() {
  clearTimeout(previewTimer);
  changing.plan = null;
  allowApply();
  previewTimer = setTimeout(() => preview(), 150);
}
$('change-ttl').addEventListener('input', () => {
  const seconds = Number(secondsOf($('change-ttl').value));
  if (seconds > 0) $('change-slider').value = toSlider(seconds);
  later();
});
$('change-slider').addEventListener('input', () => { $('change-ttl').value = ofSlider(Number($('change-slider').value)); later(); });
$('change-typed').addEventListener('input', allowApply);
$('change-cancel').addEventListener('click', () => $('change').close());
$('change').addEventListener('close', () => { changing = null; refresh(); });

function allowApply() {
  $('change-apply').disabled = !changing?.plan || changing.plan.kills > 0 && $('change-typed').value !== changing.name;
}

// preview shows what the default that is typed would do, and why the last one was refused.
async function preview(error = '') {
  if (!changing) return;
  clearTimeout(previewTimer);
  const asked = changing, {name} = asked, typed = $('change-ttl').value, ttl = secondsOf(typed), seconds = Number(ttl), turn = ++previews;
  asked.plan = null;
  allowApply();
  setText($('change-span'), ttl === '-1' ? 'documents without a ttl never die' : ttl.toLowerCase() === 'off' ? 'nothing dies, whatever its ttl' : seconds > 0 ? `= ${span(seconds)}` : '');
  try {
    const every = seconds > 0 ? Math.max(1, Math.ceil(seconds / 24)) : 3600;
    const [plan, f] = await Promise.all([command('CONTAINER.PLAN', name, 'TTL', ttl, 'SAMPLE', 10).then(fields),
      command('CONTAINER.FORECAST', name, 'TTL', ttl, 'EVERY', every, 'BUCKETS', 26).then(fields)]);
    if (changing !== asked || previews !== turn || $('change-ttl').value !== typed) return; // another one is under way
    Object.assign(changing, {plan, ttl, etag: changing.etag ?? plan.etag});
    sayError($('change-error'), error);
    bars($('change-chart'), $('change-bar'), f, f.killed[0]);
    const others = [[plan.sooner, 'sooner'], [plan.later, 'later'], [plan.same, 'as before']].filter(([n]) => n > 0).map(([n, when]) => `${count(n)} ${when}`);
    setText($('change-text'), (plan.kills ? `${plural(plan.kills, 'item')} (${bytes(plan.bytes)}) would die at once.` : 'Nothing would die at once.') +
      (others.length ? ` The others: ${others.join(', ')}${plan.never ? `, ${count(plan.never)} of them never` : ''}.` : ''));
    const some = (plan.sample || []).map((s) => s.base64 ? s : Array.isArray(s) ? s[0] : s).map((s) => element('bdi', {}, abbreviated(nameOf(s))));
    $('change-sample').replaceChildren(...some.flatMap((s, i) => [i ? ', ' : some.length < plan.kills ? 'Among them ' : some.length === 1 ? 'It is ' : 'They are ', s]), some.length ? '.' : '');
    $('change-text').classList.toggle('error', plan.kills > 0);
    $('change-confirm').hidden = plan.kills === 0;
    allowApply();
  } catch (e) {
    if (changing === asked && previews === turn) sayError($('change-error'), e.message);
  }
}

$('change-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  allowApply();
  if ($('change-apply').disabled) return;
  const {name, ttl, plan, etag} = changing;
  $('change-apply').disabled = true;
  try {
    const reply = await command('CONTAINER.SET', name, 'TTL', ttl, 'MAXKILL', plan.kills, 'IFMATCH', etag);
    if (reply === null) {
      changing.etag = null; // that of the next preview
      return await preview('Someone else has changed this default meanwhile. The preview is new: look again, then apply.');
    }
    sayError($('change-error'), '');
    $('change-text').classList.remove('error');
    setText($('change-text'), `The default of ${name} is ${Number(ttl) === -1 ? '-1: what has no ttl never dies' : ttlText(ttl)} now.`);
    setText($('change-sample'), '');
    $('change-confirm').hidden = true;
    $('change-typed').value = '';
    changing.etag = fields(await command('CONTAINER.GET', name)).etag;
    const {kills} = await offerUndo(name, true);
    if (kills > 0) $('change-text').append(` ${plural(kills, 'item')} died.`);
  } catch (e) {
    await preview(e.message); // more may have grown old enough to die
  }
});

// lastChanges returns the newest entry of the history of a container, and what CONTAINER.UNDO would take back: nothing during a hold.
async function lastChanges(name) {
  const entries = (await command('CONTAINER.HISTORY', name, 'COUNT', 30)).map(fields);
  return {newest: entries[0] ?? {}, undo: entries[0]?.what === 'held' ? undefined : entries.find((e) => e.undo > 0)};
}

// offerUndo shows the button that takes a change back, while that is possible. It returns the last change.
async function offerUndo(name, changed = false) {
  const asked = changing, {newest, undo} = await lastChanges(name);
  if (!asked || changing !== asked) return newest; // another one is open
  asked.undo = undo;
  const offered = await offer($('change-undo'), !!undo, '', 'CONTAINER.UNDO', name);
  setText($('change-undo'), undo ? `Undo (${undo.what}${undo.what === 'set' ? ` TTL ${undo.ttl}` : ''}, for ${span((undo.undo - serverNow()) / 1000)} more)` : 'Undo');
  if (changed && offered) $('change-undo').focus();
  return newest;
}
$('change-undo').addEventListener('click', async () => {
  const {name, undo} = changing;
  try {
    const now = (await lastChanges(name)).undo;
    if (now?.at !== undo.at || now.etag !== undo.etag) { // CONTAINER.UNDO takes back the newest, by any client
      await offerUndo(name);
      return sayError($('change-error'), 'Someone else has changed this container meanwhile. Look at what Undo takes back now.');
    }
    await command('CONTAINER.UNDO', name);
    $('change').close();
  } catch (e) {
    sayError($('change-error'), e.message);
  }
});

// ---------------------------------------------------------------- password and start

function askPassword() {
  source?.close();
  status('wait', 'logged out');
  if (!$('login').open) $('login').showModal();
}
$('login-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    await post('login', {user: $('login-user').value, password: $('login-password').value});
    $('login-password').value = '';
    sayError($('login-error'), '');
    $('login').close();
    start();
  } catch (e) {
    sayError($('login-error'), e.message);
    $('login-password').select();
  }
});
$('login').addEventListener('cancel', (event) => event.preventDefault());
$('logout').addEventListener('click', async () => { await post('logout', {}); location.reload(); });

let refreshing = false;
async function refresh() {
  if (refreshing || document.hidden || $('login').open || !sample?.containers.length) return;
  refreshing = true;
  try {
    await Promise.all([refreshDeaths(), refreshOutlooks(), refreshIndexes()]);
    drawContainers();
  } catch (e) {
    lost(e.message);
  }
  refreshing = false;
}

async function start() {
  try {
    const state = await (await fetch('state')).json();
    readonly = state.readonly;
    offerContainer();
    $('logout').hidden = !(state.known && state.password);
    if (!state.known) return askPassword();
  } catch {
    lost('connection lost, trying again');
    setTimeout(start, 2000);
    return;
  }
  connect();
}

let resized = 0;
addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(redraw, 100); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
setInterval(refresh, 5000);
start();
