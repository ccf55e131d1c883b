import { Hono } from "hono";
import type { Actor, ImagineMenu } from "../../../src/port/catalogue.ts";
import { RequestError } from "../errors.ts";
import { PLATFORM } from "../ids.ts";
import type { PictureMenu, PictureWish } from "../page/wire.ts";
import { type Directory, findAuthor } from "../store/directory.ts";

/** Longest that the form waits for what it offers. */
const ASK_MS = 8_000;

/** What the page's form for pictures asks for. */
export function createPictureRoutes(menu: ImagineMenu, directory: Pick<Directory, "person">): Hono {
  const { ratios, sizes, maxCount, maxReferences } = menu;

  return new Hono()
    .get("/menu", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      // Without a list the usual model still draws.
      const models = await menu.listModels(signal).catch(() => []);
      c.header("Cache-Control", "no-store");
      return c.json({ ratios, sizes, maxCount, maxReferences, models } satisfies PictureMenu);
    })
    .get("/:id", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      const { authorId = "", channelId = "" } = c.req.query();
      const by: Actor = { author: findAuthor(directory, authorId), reply: { platform: PLATFORM, channelId } };
      const id = c.req.param("id");
      const wish: PictureWish | undefined = await menu.describe(id, by, signal).catch((cause: unknown) => {
        throw new RequestError(503, "How this picture was asked for cannot be read just now. Try again.", { cause });
      });
      if (wish === undefined) {
        throw new RequestError(404, "This picture is too old: how it was asked for is not kept any more.");
      }
      c.header("Cache-Control", "no-store");
      return c.json(wish);
    });
}
