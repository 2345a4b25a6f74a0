// Growth rates of polled numbers.

const WINDOW = 15_000; // milliseconds

/** Return a function of a name and its current number: the recent growth a second, or null at first. */
export function rates() {
  const seen = new Map();
  return (name, value) => {
    const now = performance.now();
    const times = (seen.get(name) ?? []).filter(([at]) => now - at < WINDOW);
    times.push([now, value]);
    seen.set(name, times);
    const [[then, before]] = times;
    return now - then < 500 ? null : Math.max(0, (value - before) / ((now - then) / 1000));
  };
}
