// Runs the real bot on a fake chat platform, with a dialect as its gateway.
import { DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import type { Logger } from "pino";
import { z } from "zod";
import { openGateway } from "../../src/app/gateway.ts";
import { createPictureSources } from "../../src/app/picture-sources.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { ActionEvent, AttachmentRef, Author } from "../../src/port/events.ts";
import { toEditionId, toTurnId } from "../../src/port/ids.ts";
import { createCurrentTime } from "../../src/tools/current-time.ts";
import type { ToolDeps } from "../../src/tools/tool.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { openBotStores } from "../support/bot-store.ts";
import { type EngineOptions, startEngine } from "../support/engine.ts";
import { action, ada, ben, command, message } from "../support/events.ts";
import { fakePlatform, type Shown } from "../support/fake-platform.ts";
import { fakeServices } from "../support/services.ts";
import type { RunningDialect } from "./server.ts";

export const cleo: Author = { id: "cleo", name: "Cleo" };
export { ben };

const RED_SQUARE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mO4IyJCEmIY1TCqYfhqAAACcQQQFd0BdQAAAABJRU5ErkJggg==",
  "base64",
);
export const PHOTO: AttachmentRef = { platform: "test", id: "photo", name: "photo.png", sizeBytes: RED_SQUARE.length };

const NOON = Date.UTC(2026, 5, 1, 12);

const weather = defineTool({
  name: "get_weather",
  description: "The weather in a city.",
  schema: z.object({ city: z.string() }),
  timeoutMs: 1_000,
  run: async ({ city }) => `It is sunny in ${city}.`,
  describeCall: ({ city }) => `looking at the weather in ${city}`,
});

const trip = defineTool({
  name: "plan_trip",
  description: "Plans a trip.",
  schema: z.object({
    route: z.object({ from: z.string(), to: z.string() }),
    note: z.string().optional(),
  }),
  timeoutMs: 1_000,
  run: async ({ route, note }) =>
    `The trip goes from ${route.from} to ${route.to}${note === undefined ? "" : `: ${note}`}.`,
  describeCall: () => "planning a trip",
});

/** Creates a tool as MCP servers offer it. The tool accepts any arguments. */
function toolOf(server: string, given: Pick<Tool, "name" | "parameters" | "run"> & Partial<Tool>): Tool {
  return {
    description: `A tool of the server ${server}.`,
    schema: z.looseObject({}),
    timeoutMs: 1_000,
    acts: false,
    describeCall: () => `using ${given.name}`,
    ...given,
  };
}

const photo = toolOf("camera", {
  name: "take_photo",
  parameters: { type: "object", properties: {} },
  run: async () => {
    const url = `data:image/png;base64,${RED_SQUARE.toString("base64")}`;
    return { text: "Here is the photo.", pictures: [{ type: "image_url", image_url: { url } }] };
  },
});

const tea = toolOf("shop", {
  name: "order_tea",
  parameters: { type: "object", properties: {} },
  acts: true,
  approval: { server: "shop" },
  run: async () => "The tea is ordered.",
});

/** This tool has a nullable type, as many MCP servers write it. Google's APIs refuse such types. */
const rooms = toolOf("house", {
  name: "find_rooms",
  parameters: {
    type: "object",
    properties: { floor: { type: ["integer", "null"], description: "The floor, if it matters." } },
  },
  run: async () => "Two rooms are free.",
});

/** A conversation in its own channel. */
export interface Talk {
  /** Sends a message. Resolves when the bot has answered. */
  say(text: string, more?: { author?: Author; to?: "bot" | "other"; attachments?: AttachmentRef[] }): Promise<void>;
  command(name: string, text?: string, attachments?: AttachmentRef[]): Promise<void>;
  /** Changes options with `/model` and deletes the bot's confirmation. */
  set(options: string): Promise<void>;
  /** Presses a button on the newest message with that button. */
  press(name: ActionEvent["action"]): Promise<void>;
}

export interface Bot {
  open(name: string): Talk;
  /** All messages that the bot has posted and not removed. */
  readonly shown: readonly Shown[];
  close(): Promise<void>;
}

/** Starts the bot with the settings that an operator would use for this gateway. */
export async function startBot(
  gatewayOf: RunningDialect,
  log: Logger,
  {
    database = new DatabaseSync(":memory:"),
    platform = fakePlatform({ maxLength: 8_000 }),
  }: Pick<EngineOptions, "database" | "platform"> = {},
): Promise<Bot> {
  const config = readConfig(
    {
      GATEWAY_BASE_URL: gatewayOf.url,
      GATEWAY_API_KEY: gatewayOf.apiKey,
      CHAT_MODEL: gatewayOf.chatModel,
      IMAGE_MODEL: gatewayOf.imageModel,
    },
    [],
  );
  const gateway = await openGateway({ config, reachable: [], onProblem() {}, log });
  const adapter: Adapter = { ...platform.adapter, openAttachment: async () => Readable.from([RED_SQUARE]) };
  const place = { adapterOf: () => adapter, stores: openBotStores(database, log), ownKey: "k".repeat(32), log };
  const { references } = createPictureSources({ config, ...place, serviceUrl: () => undefined });
  const { accept, idle, queue } = startEngine({
    gateway: gateway.client,
    model: gatewayOf.chatModel,
    ...(gatewayOf.imageModel !== undefined && { imageModel: gatewayOf.imageModel }),
    platform,
    database,
    references,
    adapterOf: () => adapter,
    tools: [createCurrentTime(fakeServices<ToolDeps>({ now: () => NOON })), weather, trip, photo],
    outsideTools: () => [tea, rooms],
    log,
  });

  function open(name: string): Talk {
    const place = { conversationId: `test:${name}`, reply: { platform: "test", channelId: name } };
    let lastKey = "";
    return {
      async say(text, { author = ada, to = "bot", attachments = [] } = {}) {
        const event = message(text, { ...place, author, addressed: to, attachments });
        if (to === "bot") lastKey = event.key;
        await accept(event);
        await idle();
      },
      async command(name, text = "", attachments = []) {
        await accept({ ...command(name, text), ...place, attachments });
        await idle();
      },
      async set(options) {
        const before = platform.channel.length;
        await accept({ ...command("model", options), ...place });
        await idle();
        platform.channel.splice(before);
      },
      async press(pressed) {
        const buttons = platform.channel.flatMap(({ draft }) => draft.buttons);
        const turnId =
          buttons.findLast(({ action }) => action === pressed)?.turnId ?? toEditionId(toTurnId(lastKey), 1);
        await accept({ ...action(pressed, turnId), ...place });
        await idle();
      },
    };
  }

  return {
    open,
    shown: platform.channel,
    async close() {
      await queue.close(0);
      await gateway.close();
    },
  };
}
