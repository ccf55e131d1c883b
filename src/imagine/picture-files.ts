import type { Logger } from "pino";
import { createPictureCopies } from "../media/picture-copies.ts";
import type { References } from "../media/reference.ts";
import { createReadPicture } from "../media/reference-picture.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Stores } from "../store/keyv.ts";
import { filesOf, type PictureTurn, picturesOf } from "../turn/record.ts";
import type { PictureFiles } from "../turn/records.ts";

export interface KeptFiles extends PictureFiles {
  /** Copies those of a turn's files that their platform will delete. Rejects only with the signal's reason. */
  keep(turn: PictureTurn, signal: AbortSignal): Promise<void>;
}

export interface PictureFilesOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  adapterOf(platform: string): Pick<Adapter, "openAttachment">;
  links: Pick<References, "erase" | "forget">;
  log: Logger;
}

/** Manages copies of reference and created images, and the links to these copies. */
export function createPictureFiles({ adapterOf, links, ...options }: PictureFilesOptions): KeptFiles {
  const read = createReadPicture(async (ref, signal) => adapterOf(ref.platform).openAttachment(ref, signal));
  const copies = createPictureCopies({ ...options, read });

  return {
    keep: (turn, signal) => {
      const { id, reply, author } = turn;
      return copies.keep(filesOf(turn), { turnId: id, platform: reply.platform, authorId: author.id }, signal);
    },
    async erase(turn) {
      await copies.erase(filesOf(turn), turn.id);
      await links.erase(turn.references, turn.id);
      // Erase all links to these images, because other turns may have links too.
      await links.erase(picturesOf(turn));
    },
    async forget(platform, authorId) {
      await copies.forget(platform, authorId);
      await links.forget(platform, authorId);
    },
  };
}
