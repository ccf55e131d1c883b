import type { LinkedReference, ReferenceSource } from "../../src/gateway/image-ways.ts";
import type { CopyOwner } from "../../src/media/picture-copies.ts";
import type { References } from "../../src/media/reference.ts";
import { type PictureTurn, toFreshRecord } from "../../src/turn/record.ts";
import type { PictureFiles } from "../../src/turn/records.ts";
import { ada } from "./events.ts";

export function pictureTurn(given: Partial<PictureTurn> = {}): PictureTurn {
  const place = { conversationId: "test:a", reply: { platform: "test", channelId: "general" }, author: ada };
  return {
    ...toFreshRecord({ id: "job", ...place }),
    at: 1_700_000_000_000,
    prompt: "a fox",
    model: "painter",
    isSpoiler: false,
    references: [],
    parts: [{ state: "pending" }],
    ...given,
  };
}

export const noFiles: PictureFiles & { keep(): Promise<void> } = {
  keep: async () => {},
  erase: async () => {},
  forget: async () => {},
};

/** References without links and bytes. */
export const noLinks: Omit<References, "prepare"> = {
  load: async () => ({ ok: false, problems: ["It cannot be loaded."] }),
  erase: async () => {},
  forget: async () => {},
};

/** References with links but without bytes. */
export function linked(...references: LinkedReference[]): ReferenceSource {
  return { links: async () => references, load: () => Promise.reject(new Error("There are no bytes.")) };
}

export const owner: CopyOwner = { turnId: "j1", platform: "slack", authorId: "U1" };
