// Loaded ahead of the suite where a scenario is tried again (node --import): its time
// limits are ten times as long, and its pauses, so that a busy machine keeps within them.
const times = 10;

const { setTimeout } = globalThis;
const later = (callback, delay = 0, ...rest) => setTimeout(callback, delay * times, ...rest);
globalThis.setTimeout = Object.assign(later, setTimeout);

const { timeout } = AbortSignal;
AbortSignal.timeout = (delay) => timeout.call(AbortSignal, delay * times);
