import type { ServerResponse } from "node:http";
import {
  type Answer,
  DONE,
  events,
  FINISH,
  hanging,
  json,
  ROLE,
  startFaultServer,
  stream,
  words,
} from "./fault-server.ts";

/** A gateway whose first answer grows, and ends, when the test says so; all later ones come whole. */
export interface HeldGateway {
  /** The settings of a service that asks it. */
  env: Record<string, string>;
  /** Adds to the first answer; waits for its request first. */
  say(text: string): Promise<void>;
  /** Ends the first answer. */
  finish(): Promise<void>;
  /** What it was asked to answer so far, oldest first. */
  asked(): string[];
}

/** `whole` is what the later answers say. Ends with the test. */
export async function startHeldGateway(whole: string): Promise<HeldGateway> {
  const first = Promise.withResolvers<ServerResponse>();
  let isAsked = false;
  const answer: Answer = (response, received) => {
    if (!received.path.endsWith("/chat/completions")) return json(404, {})(response, received);
    const isFirst = !isAsked;
    isAsked = true;
    if (isFirst) first.resolve(response);
    return (isFirst ? hanging(ROLE) : events(stream(whole)))(response, received);
  };
  const { url, received } = await startFaultServer(answer);
  return {
    env: { GATEWAY_BASE_URL: url, GATEWAY_API_KEY: "none", CHAT_MODEL: "held" },
    async say(text) {
      (await first.promise).write(words(text));
    },
    async finish() {
      (await first.promise).end(FINISH + DONE);
    },
    asked: () =>
      received.filter(({ path }) => path.endsWith("/chat/completions")).map(({ json }) => JSON.stringify(json)),
  };
}
