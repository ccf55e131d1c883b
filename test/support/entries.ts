import { DatabaseSync } from "node:sqlite";
import { silent } from "../../lab/support/log.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores, type Entries } from "../../src/store/keyv.ts";

export function openEntries(namespace = "test"): Entries {
  return createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent }, NO_RIGHT).open(
    namespace,
  );
}
