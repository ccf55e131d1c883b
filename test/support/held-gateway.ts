import type { ServerResponse } from "node:http";
import { type Answer, events, hanging, json, ROLE, startFaultServer, stream, words } from "./fault-server.ts";

/** A gateway whose first answer grows when the test says so, and never ends; all later ones come whole. */
export interface HeldGateway {
  /** The settings of a service that asks it. */
  env: Record<string, string>;
  /** Adds to the first answer; waits for its request first. */
  say(text: string): Promise<void>;
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
  const { url } = await startFaultServer(answer);
  return {
    env: { GATEWAY_BASE_URL: url, GATEWAY_API_KEY: "none", CHAT_MODEL: "held" },
    async say(text) {
      (await first.promise).write(words(text));
    },
  };
}
