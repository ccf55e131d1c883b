import { Hono } from "hono";
import type { Section } from "./page/wire.ts";

/**
 * Checks everything that the service needs. With `mayChat`, also asks the model a question, which costs a few tokens.
 */
export type Examine = (options: { mayChat: boolean }) => Promise<Section[]>;

interface Examination {
  at: number;
  sections: Section[];
}

/** Serves the latest findings and runs the checks again. Concurrent requests share one run. */
export function createDoctorRoutes(examine: Examine): Hono {
  let latest: Examination | undefined;
  let running: Promise<Examination> | undefined;

  async function run(mayChat: boolean): Promise<Examination> {
    latest = { at: Date.now(), sections: await examine({ mayChat }) };
    return latest;
  }

  return new Hono()
    .get("/", (c) => c.json({ latest: latest ?? null, isRunning: running !== undefined }))
    .post("/", async (c) => {
      running ??= run(c.req.query("chat") === "1").finally(() => void (running = undefined));
      return c.json({ latest: await running, isRunning: false });
    });
}
