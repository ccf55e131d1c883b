import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The network between one life of the service and a platform. */
export interface Line {
  /** Stands for the server behind it. */
  origin: string;
  /** From here on nothing comes through, and what is under way is lost: the process at this end is dead. */
  cut(): void;
  close(): Promise<void>;
}

/** Passes bytes to the server at `target` and back. */
export async function openLine(target: string): Promise<Line> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;

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
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  function cut(): void {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  }
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
