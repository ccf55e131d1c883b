import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * How a shut door treats clients of the server behind it: it does not react at all, or it closes the connection at
 * once.
 */
export type Shut = "never answers" | "refuses";

/** A proxy in front of a server. */
export interface Door {
  origin: string;
  /** From now on, nothing passes in either direction. */
  shut(how: Shut): void;
  /** Connects new clients to another server. Open connections stay. */
  leadTo(origin: string): void;
  /** Resolves when a new client connects. */
  nextVisitor(): Promise<void>;
  remove(): void;
}

/** A door in front of the server at `origin`. If `shutFrom` is given, it is shut from the start. */
export async function startDoor(origin: string, shutFrom?: Shut): Promise<Door> {
  let target = new URL(origin);
  const sockets = new Set<Socket>();
  let how = shutFrom;
  let visited = Promise.withResolvers<void>();

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  }

  const server = createServer((outside) => {
    visited.resolve();
    visited = Promise.withResolvers();
    keep(outside);
    if (how === "refuses") outside.resetAndDestroy();
    if (how !== undefined) return;
    const inside = connect(Number(target.port), target.hostname);
    keep(inside);
    outside.pipe(inside);
    inside.pipe(outside);
    outside.on("close", () => inside.destroy());
    inside.on("close", () => outside.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    shut(way) {
      how = way;
      for (const socket of sockets) {
        if (way === "refuses") socket.resetAndDestroy();
        else socket.unpipe().pause();
      }
    },
    leadTo: (origin) => void (target = new URL(origin)),
    nextVisitor: () => visited.promise,
    remove() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
