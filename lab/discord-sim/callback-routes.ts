import { z } from "zod";
import type { BotMessages } from "./bot-messages.ts";
import { ACKNOWLEDGE_MS, INTERACTION_TYPES, type Interaction, toOrigin } from "./interaction.ts";
import type { Interactions } from "./interactions.ts";
import { NO_MENTIONS } from "./mentions.ts";
import { readForm } from "./message-body.ts";
import { MESSAGE_FLAGS } from "./message-payload.ts";
import { findModalProblems } from "./modal-rules.ts";
import { refuse, refuseForm } from "./refusals.ts";
import { type Call, NO_CONTENT, ok, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import type { Message, Payload } from "./world.ts";

const CALLBACK = z.object({ type: z.number().int(), data: z.record(z.string(), z.unknown()).nullish() });
const TEXT = z.string().min(1).max(100);
const CHOICES = z.object({
  choices: z.array(z.looseObject({ name: TEXT, value: z.union([TEXT, z.number()]) })).max(25),
});

const REPLY = 4;
const DEFER = 5;
const DEFER_UPDATE = 6;
const UPDATE = 7;
const CHOOSE = 8;
const MODAL = 9;

/** Accepts the first response to an interaction: one response of an allowed type, within three seconds. */
export function createCallbackRoutes(
  simulation: Simulation,
  interactions: Interactions,
  messages: BotMessages,
): Route[] {
  const { clock, world, timeline, violations, payloads } = simulation;

  function find({ params }: Call): Interaction {
    const interaction = interactions.find(params["token"] ?? "");
    if (interaction === undefined || interaction.id !== params["interaction"]) throw refuse("unknown-interaction");
    if (interaction.acknowledgedAs !== undefined) throw refuse("already-acknowledged");
    const ageMs = clock.now() - interaction.createdAtMs;
    if (ageMs <= ACKNOWLEDGE_MS) return interaction;
    const late = `Interaction ${interaction.id} was acknowledged after ${(ageMs / 1000).toFixed(1)} s`;
    const sentence = `${late}; the person saw that the application did not respond.`;
    violations.record("late-acknowledgement", sentence, interaction.createdAtMs + ACKNOWLEDGE_MS);
    throw refuse("unknown-interaction");
  }

  function defer(interaction: Interaction, data: Payload): Message {
    const channel = world.channels.get(interaction.channelId);
    if (channel === undefined) throw refuse("unknown-channel");
    const isEphemeral = (Number(data["flags"] ?? 0) & MESSAGE_FLAGS.ephemeral) !== 0;
    return timeline.add(channel, {
      author: world.bot,
      type: interaction.replyType,
      mentions: NO_MENTIONS,
      webhookId: world.bot.id,
      interaction: toOrigin(interaction),
      ...(isEphemeral ? { ephemeralFor: interaction.user.id } : {}),
      state: {
        content: "",
        embeds: [],
        components: [],
        attachments: [],
        flags: MESSAGE_FLAGS.loading | (isEphemeral ? MESSAGE_FLAGS.ephemeral : 0),
      },
    });
  }

  function carryOut(interaction: Interaction, type: number, data: Payload, { body }: Call): Message | undefined {
    const channel = world.channels.get(interaction.channelId);
    if (channel === undefined) throw refuse("unknown-channel");
    if (type === REPLY) return messages.post(channel, { json: data, files: body.files }, { interaction });
    if (type === DEFER) return defer(interaction, data);
    if (type === UPDATE && interaction.source !== undefined) {
      messages.edit(interaction.source, { json: data, files: body.files });
    }
    if (type === CHOOSE) interaction.choices = readForm(CHOICES, data).choices;
    if (type === MODAL) {
      const problems = findModalProblems(data);
      if (problems.length > 0) throw refuseForm(...problems);
      interaction.modal = data;
    }
    return type === DEFER_UPDATE || type === UPDATE ? interaction.source : undefined;
  }

  function describe(interaction: Interaction, type: number, message: Message | undefined): Payload {
    const isLoading = type === DEFER;
    return {
      interaction: {
        id: interaction.id,
        type: INTERACTION_TYPES[interaction.kind],
        ...(message === undefined ? {} : { response_message_id: message.id }),
        response_message_loading: isLoading,
        response_message_ephemeral: message?.ephemeralFor !== undefined,
      },
      resource: { type, ...(message === undefined ? {} : { message: payloads.toMessage(message, true) }) },
    };
  }

  return [
    {
      route: "POST /interactions/:interaction/:token/callback",
      access: "token",
      isCounted: false,
      handle(call) {
        const interaction = find(call);
        const { type, data } = readForm(CALLBACK, call.body.json);
        if (!fits(interaction, type)) {
          const message = `A ${interaction.kind} interaction takes no callback of type ${type}.`;
          throw refuseForm({ path: ["type"], code: "INTERACTION_CALLBACK_TYPE_INVALID", message });
        }
        const message = carryOut(interaction, type, data ?? {}, call);
        interaction.acknowledgedAs = type;
        interaction.acknowledgedAtMs = clock.now();
        if (message !== undefined) {
          interaction.original = message;
          if (message !== interaction.source) interaction.messages.push(message);
        }
        const wantsBody = call.query.get("with_response") === "true";
        return wantsBody ? ok(describe(interaction, type, message)) : NO_CONTENT;
      },
    } satisfies Route,
  ];
}

function fits({ kind, source }: Interaction, type: number): boolean {
  if (kind === "autocomplete") return type === CHOOSE;
  if (type === DEFER_UPDATE || type === UPDATE) return source !== undefined;
  return type === REPLY || type === DEFER || (type === MODAL && kind !== "modal");
}
