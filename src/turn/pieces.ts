import { toTurnId } from "../port/ids.ts";
import type { TurnPiece } from "../tools/tool.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";

/** Pictures and the like that an attempt shows besides the answer. */
export interface Pieces {
  /** Starts the next piece of a tool. */
  next(): TurnPiece;
  /** Starts the piece of this name, which no other piece of the attempt has. */
  begin(name: string): Pick<TurnPiece, "id" | "after">;
  /** Uses the numbers of the pieces up. Returns the entry of the history that the answer follows. */
  end(): string | undefined;
}

/** An attempt that takes over from another process begins the same pieces under the same ids. */
export function createPieces(records: Pick<TurnRecords, "note">, record: TurnRecord): Pieces {
  let count = 0;

  function begin(name: string): Pick<TurnPiece, "id" | "after"> {
    const id = toTurnId(`${record.id}:made:${name}`);
    const pieces = (record.pieces ??= []);
    if (!pieces.includes(id)) pieces.push(id);
    void records.note(record);
    return { id, after: pieces[pieces.indexOf(id) - 1] ?? record.messageIds.at(-1) };
  }

  return {
    next() {
      const index = count++;
      return { index, ...begin(String((record.made ?? 0) + index)) };
    },
    begin: (name) => begin(`${record.made ?? 0}:${name}`),
    end() {
      const { pieces = [], made = 0, messageIds } = record;
      delete record.pieces;
      if (pieces.length > 0) record.made = made + pieces.length;
      return pieces.at(-1) ?? messageIds.at(-1);
    },
  };
}
