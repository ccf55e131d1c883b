import { randomBytes } from "node:crypto";
import type { Keyv } from "keyv";
import type { Stores } from "../store/keyv.ts";

const NAMESPACE = "identity";

/** Returns keys that are created once and stored with the history. All processes of the store use the same keys. */
export async function readKeys({ open, inTurn }: Pick<Stores, "open" | "inTurn">) {
  const keyv = open(NAMESPACE);
  const read = async (keyv: Keyv, name: string): Promise<string | undefined> => {
    const known: unknown = await keyv.get(name);
    return typeof known === "string" ? known : undefined;
  };
  const create = async (keyv: Keyv, name: string): Promise<string> => {
    // Another process may have stored the key at the same moment.
    const known = await read(keyv, name);
    if (known !== undefined) return known;
    const key = randomBytes(32).toString("base64url");
    await keyv.set(name, key);
    return key;
  };
  const readOrCreate = async (name: string): Promise<string> =>
    (await read(keyv, name)) ?? (await inTurn(NAMESPACE, (open) => create(open(NAMESPACE), name)));

  return {
    /** Creates the pseudonyms that replace people's ids in requests to the gateway. */
    pseudonymKey: await readOrCreate("pseudonym-key"),
    /** Signs the links from which the gateway fetches images. */
    relayKey: await readOrCreate("relay-key"),
    browserKey: await readOrCreate("browser-key"),
    markKey: await readOrCreate("mark-key"),
  };
}
