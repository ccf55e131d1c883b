import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The ways of a shut door with whoever comes to the server behind it: it does nothing at all, or hangs up at once. */
export type Shut = "never answers" | "refuses";

/** Stands before a server. */
export interface Door {
  /** Where the server is reached through it. */
  origin: string;
  /** Nothing passes any more, in neither direction. */
  shut(how: Shut): void;
  /** Leads new connections to another server. Open connections stay. */
  leadTo(origin: string): void;
  /** Resolves when somebody comes who has not come yet. */
  nextVisitor(): Promise<void>;
  /** Takes it away, with whoever is in it. */
  remove(): void;
}

/** A door before the server at `origin`; shut from the beginning where that is said. */
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
