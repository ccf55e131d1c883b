import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { ByteBudget } from "../concurrency/byte-budget.ts";

/** The values that the HTTP server passes with every request. */
export interface ServerBindings extends HttpBindings {
  /** Limits the total size of the request bodies of all routes. */
  bodies: ByteBudget;
}

export function bindingsOf(context: Context): ServerBindings {
  return context.env as ServerBindings;
}

/** True if the client has disconnected, so that a later error is not the server's fault. */
export function hasLeft(context: Context): boolean {
  return context.req.raw.signal.aborted;
}
