// A thread that ends its process if the process uses too much memory. No option of Node limits memory outside V8's
// heap.

const MAX_BYTES = 512 * 1024 * 1024;
const EVERY_MS = 20;

setInterval(() => {
  if (process.memoryUsage.rss() > MAX_BYTES) process.kill(process.pid, "SIGKILL");
}, EVERY_MS);
