import type { ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import {
  type Answer,
  DONE,
  events,
  FINISH,
  hanging,
  json,
  openFaultServer,
  ROLE,
  stream,
  words,
} from "./fault-server.ts";
import type { OnEnd } from "./listen.ts";

/** A gateway whose first answer grows and ends when the test says so. All later answers arrive at once. */
export interface HeldGateway {
  /** The settings of a service that uses this gateway. */
  env: Record<string, string>;
  /** Adds to the first answer. Waits for the answer's request first. */
  say(text: string): Promise<void>;
  finish(): Promise<void>;
  /** The questions of all requests, oldest first. */
  asked(): string[];
}

/** `whole` is the text of the later answers. The gateway ends with the test, or when `onEnd` runs. */
export async function startHeldGateway(whole: string, onEnd: OnEnd = onTestFinished): Promise<HeldGateway> {
  const first = Promise.withResolvers<ServerResponse>();
  let isAsked = false;
  const answer: Answer = (response, received) => {
    if (!received.path.endsWith("/chat/completions")) return json(404, {})(response, received);
    const isFirst = !isAsked;
    isAsked = true;
    if (isFirst) first.resolve(response);
    return (isFirst ? hanging(ROLE) : events(stream(whole)))(response, received);
  };
  const { url, received } = await openFaultServer(onEnd, [answer]);
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
