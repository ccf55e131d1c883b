import type { LinkedReference, ReferenceSource } from "../../src/gateway/image-ways.ts";
import type { PictureJob } from "../../src/imagine/picture-job.ts";
import type { CopyOwner, PictureCopies } from "../../src/media/picture-copies.ts";
import type { References } from "../../src/media/reference.ts";
import { ada } from "./events.ts";

/** A job of one picture that nothing was done for yet; everything not given is sensible. */
export function pictureJob(given: Partial<PictureJob> = {}): PictureJob {
  return {
    v: 1,
    id: "job",
    at: 1_700_000_000_000,
    conversationId: "test:a",
    isRemembered: true,
    reply: { platform: "test", channelId: "general" },
    author: ada,
    prompt: "a fox",
    model: "painter",
    isSpoiler: false,
    references: [],
    parts: [{ state: "pending" }],
    isOver: false,
    ...given,
  };
}

/** Where nothing has to be copied. */
export const noCopies: Pick<PictureCopies, "keep" | "erase" | "forget"> = {
  keep: async () => {},
  erase: async () => {},
  forget: async () => {},
};

/** Stands for pictures of which there is neither a link nor the bytes. */
export const noLinks: Omit<References, "prepare"> = {
  load: async () => ({ ok: false, problems: ["It cannot be loaded."] }),
  erase: async () => {},
  forget: async () => {},
};

/** References that a gateway can fetch, and whose bytes are nowhere. */
export function linked(...references: LinkedReference[]): ReferenceSource {
  return { links: async () => references, load: () => Promise.reject(new Error("There are no bytes.")) };
}

/** Somebody for whom links are made. */
export const owner: CopyOwner = { jobId: "j1", platform: "slack", authorId: "U1" };
