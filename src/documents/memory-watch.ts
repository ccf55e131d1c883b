// A thread that ends its process when that takes too much memory: no option of Node bounds the memory outside V8's heap.

const MAX_BYTES = 512 * 1024 * 1024;
const EVERY_MS = 20;

setInterval(() => {
  if (process.memoryUsage.rss() > MAX_BYTES) process.kill(process.pid, "SIGKILL");
}, EVERY_MS);
