import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import { AwayError, RequestError } from "../errors.ts";
import type { Outbox, OutboxChange } from "../store/outbox.ts";
import type { Tables } from "../store/tables.ts";

/** How long the queue may take to store an event. After that, the page asks the user to try again. */
const ACCEPT_MS = 10_000;

export interface DeliveryDeps {
  tables: Tables;
  outbox: Outbox;
  /** Undefined while no events are accepted. */
  accept: () => Accept | undefined;
}

/** Hands over a noted event unless that is already done. Rejects with a `RequestError` for the person. */
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

/** Notes an event that changes an existing message, and hands it over. If that fails, no note remains. */
export async function offer(deps: DeliveryDeps, event: InboundEvent, change: OutboxChange): Promise<void> {
  deps.tables.inTransaction(() => deps.outbox.note(event, change));
  try {
    await deliver(deps, event.key);
  } catch (error) {
    deps.outbox.withdraw(event.key);
    throw error;
  }
}
