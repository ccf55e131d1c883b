import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Accepts clean-up functions and runs them in reverse order. Tests that run in parallel pass their own. */
export type OnEnd = (end: () => Promise<void> | void) => void;

/** Makes a server listen on this machine until the test ends, by default on a free port. Resolves to its origin. */
export function listenUntilTestEnds(server: Server, port = 0): Promise<string> {
  return listen(server, onTestFinished, port);
}

/** Does the same until `onEnd` runs. */
export async function listen(server: Server, onEnd: OnEnd, port = 0): Promise<string> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  onEnd(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
