import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy for all connections from one life of a process to one server. */
export interface Line {
  /** Clients use this origin instead of the server's. */
  origin: string;
  /** Aborts the open connections, but accepts new ones. */
  drop(): void;
  /** From now on, delays all data in both directions. */
  slow(delayMs: number): void;
  close(): Promise<void>;
}

/** Forwards bytes between its clients and the server at `target`. */
export async function openLine(target: string): Promise<Line> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isClosed = false;
  let delayMs = 0;

  function pass(from: Socket, to: Socket): void {
    from.on("data", (bytes) => {
      if (delayMs === 0) {
        if (!to.write(bytes)) from.pause();
        return;
      }
      from.pause();
      setTimeout(() => {
        if (to.write(bytes)) from.resume();
      }, delayMs);
    });
    to.on("drain", () => from.resume());
    from.on("end", () => to.end());
  }

  function keep(socket: Socket, other: () => Socket | undefined): void {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      other()?.destroy();
    });
  }

  const server = createServer((near) => {
    if (isClosed) {
      near.destroy();
      return;
    }
    const far = connect(Number(port), hostname);
    keep(near, () => far);
    keep(far, () => near);
    pass(near, far);
    pass(far, near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  function drop(): void {
    for (const socket of sockets) socket.destroy();
  }
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    drop,
    slow(ms) {
      delayMs = ms;
    },
    async close() {
      isClosed = true;
      drop();
      server.close();
      await once(server, "close");
    },
  };
}
