import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { ByteBudget } from "../concurrency/byte-budget.ts";

/** Passed by the one HTTP server along with every request. */
export interface ServerBindings extends HttpBindings {
  /** Shared by all routes. */
  bodies: ByteBudget;
}

export function bindingsOf(context: Context): ServerBindings {
  return context.env as ServerBindings;
}

/** True once nobody waits for the answer any more: a failure after that is none of the server's. */
export function hasLeft(context: Context): boolean {
  return context.req.raw.signal.aborted;
}
