import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import { AwayError, RequestError } from "../errors.ts";
import type { Outbox, OutboxChange } from "../store/outbox.ts";
import type { Tables } from "../store/tables.ts";

/** The queue gets this long to store an event. After that, the page asks the person to try again. */
const ACCEPT_MS = 10_000;

export interface DeliveryDeps {
  tables: Tables;
  outbox: Outbox;
  /** Undefined while the process accepts no events. */
  accept: () => Accept | undefined;
}

/** Passes on a noted event once. Rejects with a `RequestError` whose message is for the person. */
export async function deliver({ outbox, accept }: DeliveryDeps, key: string): Promise<void> {
  if (!outbox.has(key)) return;
  const taking = accept();
  if (taking === undefined) throw new AwayError();
  try {
    await outbox.deliver(key, taking, ACCEPT_MS);
  } catch (cause) {
    throw new RequestError(503, "The server could not store this. Try again in a moment.", { cause });
  }
}

/** Notes an event that changes an existing message, and passes it on. If that fails, removes the note. */
export async function offer(deps: DeliveryDeps, event: InboundEvent, change: OutboxChange): Promise<void> {
  deps.tables.inTransaction(() => deps.outbox.note(event, change));
  try {
    await deliver(deps, event.key);
  } catch (error) {
    deps.outbox.withdraw(event.key);
    throw error;
  }
}
