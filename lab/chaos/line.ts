import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The network between one life of the service and what it talks to. */
export interface Line {
  /** Stands for the server behind it. */
  origin: string;
  /** From here on nothing comes through, and what is under way is lost: the process at this end is dead. */
  cut(): void;
  /** Cuts the connections there are; others may be opened. */
  drop(): void;
  /** Whatever comes through takes so long from here on, in each direction. */
  slow(delayMs: number): void;
  close(): Promise<void>;
}

/** Passes bytes to the server at `target` and back. */
export async function openLine(target: string): Promise<Line> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
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
    if (isCut) {
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
  function cut(): void {
    isCut = true;
    drop();
  }
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    drop,
    slow(ms) {
      delayMs = ms;
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
