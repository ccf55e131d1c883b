import { readText, toBody } from "../api/wire.ts";

/** What can be told of a message on a socket before Bolt reads it. */
export interface Envelope {
  id: string | undefined;
  type: string | undefined;
  /** Why a socket shall go. */
  reason: string | undefined;
  /** It should hold an event and does not. */
  isEmptyEvent: boolean;
  payloadType: string | undefined;
}

/** Never throws: what is no envelope has nothing in it. */
export function readEnvelope(data: unknown): Envelope {
  const body = parse(data);
  const payload = toBody(body["payload"]);
  const event = payload["event"];
  return {
    id: readText(body["envelope_id"]),
    type: readText(body["type"]),
    reason: readText(body["reason"]),
    isEmptyEvent: body["type"] === "events_api" && readText(toBody(event)["type"]) === undefined,
    payloadType: readText(payload["type"]),
  };
}

function parse(data: unknown) {
  if (typeof data !== "string") return {};
  try {
    return toBody(JSON.parse(data));
  } catch {
    return {};
  }
}
