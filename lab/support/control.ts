import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { z } from "zod";

/** A message as people see it. */
export interface ShownMessage {
  id: string;
  /** On Slack, the id of the thread's first message. */
  thread?: string;
  author: string;
  text: string;
  isGrowing: boolean;
  /** Labels of the message's buttons. */
  buttons: string[];
  files: string[];
  /** The only person who sees the message. */
  onlyFor?: string;
}

/**
 * A simulated platform for the control API. A method throws an `Error` with a readable message if a request is
 * impossible.
 */
export interface Controlled {
  readonly people: readonly string[];
  /** `direct` stands for each person's direct conversation with the bot. */
  readonly channels: readonly string[];
  say(said: z.infer<typeof sayBody>): { id: string };
  edit(edited: z.infer<typeof editBody>): void;
  remove(place: z.infer<typeof placeBody>): void;
  messages(channel: string, person: string): ShownMessage[];
  press(press: z.infer<typeof pressBody>): Promise<unknown>;
  command(command: z.infer<typeof commandBody>): Promise<unknown>;
  /** The actions for `POST /faults` and `POST /connections`, see `route`. */
  readonly faults: Route;
  readonly connections: Route;
  readonly requests: readonly object[];
  readonly violations: readonly object[];
}

const name = z.string().min(1);
const placeBody = z.strictObject({ person: name.default("ada"), channel: name.default("general"), id: name });
const editBody = placeBody.extend({ text: z.string() });
const pressBody = placeBody.extend({ button: name });
const sayBody = placeBody
  .omit({ id: true })
  .extend({ text: z.string(), thread: name.optional(), mention: z.boolean().default(false) });
const commandBody = placeBody.omit({ id: true }).extend({
  command: name,
  text: z.string().default(""),
  options: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
});

export interface Route {
  /** Checks the body; absent if the route has none. */
  schema?: z.ZodType;
  run(body: unknown, query: URLSearchParams): unknown;
}

/** Creates a route that checks its body before it calls `act`. */
export function route<T>(schema: z.ZodType<T>, act: (body: T) => unknown): Route {
  return { schema, run: (body) => act(schema.parse(body)) };
}

function toRoutes(platform: Controlled): Readonly<Record<string, Route>> {
  const { people, channels, faults, connections } = platform;
  return {
    "GET /": { run: () => ({ people, channels: [...channels, "direct"], routes: describe(toRoutes(platform)) }) },
    "GET /messages": {
      run: (_, query) => platform.messages(query.get("channel") ?? "general", query.get("person") ?? "ada"),
    },
    "POST /messages": route(sayBody, platform.say),
    "PATCH /messages": route(editBody, platform.edit),
    "DELETE /messages": route(placeBody, platform.remove),
    "POST /presses": route(pressBody, platform.press),
    "POST /commands": route(commandBody, platform.command),
    "POST /faults": faults,
    "POST /connections": connections,
    "GET /requests": { run: () => platform.requests },
    "GET /violations": { run: () => platform.violations },
  };
}

function describe(routes: Readonly<Record<string, Route>>): Record<string, unknown> {
  const fieldsOf = ({ schema }: Route) =>
    schema === undefined ? {} : z.toJSONSchema(schema, { io: "input" }).properties;
  return Object.fromEntries(Object.entries(routes).map(([path, one]) => [path, fieldsOf(one)]));
}

/**
 * Serves a platform's control API on a loopback port; 0 means any free port. Bodies are JSON. An impossible request
 * gets a 400 with `{ "error": sentence }`. `GET /` describes all routes.
 */
export async function serveControl(
  platform: Controlled,
  port: number,
): Promise<{ url: string; close(): Promise<void> }> {
  const routes = toRoutes(platform);

  async function answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const url = new URL(request.url ?? "/", "http://lab");
    const route = routes[`${request.method} ${url.pathname}`];
    if (route === undefined) return { status: 404, body: { error: `Use one of: ${Object.keys(routes).join(", ")}.` } };
    try {
      const body = await route.run(route.schema === undefined ? undefined : await json(request), url.searchParams);
      return { status: 200, body: body ?? {} };
    } catch (error) {
      return { status: 400, body: { error: sentenceOf(error) } };
    }
  }

  async function send(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = await answer(request);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(`${JSON.stringify(body, undefined, 2)}\n`);
  }

  const server = createServer((request, response) => {
    void send(request, response);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function sentenceOf(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error);
  return error instanceof Error ? error.message : String(error);
}
