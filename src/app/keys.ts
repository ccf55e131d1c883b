import { randomBytes } from "node:crypto";
import type { Stores } from "../store/keyv.ts";

/** Keys that are made once and kept with the history, the same for all processes of the store. */
export async function readKeys({ open, inTurn }: Pick<Stores, "open" | "inTurn">) {
  const keyv = open("identity");
  const read = async (name: string): Promise<string | undefined> => {
    const known: unknown = await keyv.get(name);
    return typeof known === "string" ? known : undefined;
  };
  const create = async (name: string): Promise<string> => {
    // Another process may have begun in the same moment.
    const known = await read(name);
    if (known !== undefined) return known;
    const key = randomBytes(32).toString("base64url");
    await keyv.set(name, key);
    return key;
  };
  const readOrCreate = async (name: string): Promise<string> =>
    (await read(name)) ?? (await inTurn("identity", () => create(name)));

  return {
    /** Makes the pseudonyms that the gateway gets instead of people's ids. */
    pseudonymKey: await readOrCreate("pseudonym-key"),
    /** Signs the links under which the gateway fetches pictures. */
    relayKey: await readOrCreate("relay-key"),
    browserKey: await readOrCreate("browser-key"),
    markKey: await readOrCreate("mark-key"),
  };
}
