import type { BotMessages } from "./bot-messages.ts";
import { type Interaction, TOKEN_MS } from "./interaction.ts";
import type { Interactions } from "./interactions.ts";
import { MESSAGE_FLAGS } from "./message-payload.ts";
import { refuse } from "./refusals.ts";
import { type Call, NO_CONTENT, ok, type Reply, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import { type Message, shown } from "./world.ts";

const MESSAGE = "/webhooks/:webhook/:token/messages/:message";

/**
 * Handles calls after the first response to an interaction. They use the interaction's token, which is valid for
 * fifteen minutes.
 */
export function createWebhookRoutes(
  simulation: Simulation,
  interactions: Interactions,
  messages: BotMessages,
): Route[] {
  const { clock, world, timeline, violations, payloads } = simulation;
  const toReply = (message: Message): Reply => ok(payloads.toMessage(message, true));

  function find({ params }: Call): Interaction {
    const interaction = interactions.find(params["token"] ?? "");
    if (interaction === undefined || params["webhook"] !== world.bot.id) throw refuse("unknown-webhook");
    const lateMs = clock.now() - interaction.createdAtMs - TOKEN_MS;
    if (lateMs > 0) {
      const late = `${(lateMs / 1000).toFixed(1)} s after its token ended`;
      violations.record("expired-interaction", `Interaction ${interaction.id} was used ${late}.`);
      throw refuse("expired-token");
    }
    if (interaction.acknowledgedAs === undefined) throw refuse("unknown-webhook");
    return interaction;
  }

  function messageOf(call: Call): Message {
    const interaction = find(call);
    const id = call.params["message"] ?? "";
    const message =
      id === "@original"
        ? (interaction.original ?? interaction.source)
        : interaction.messages.find((own) => own.id === id);
    if (message === undefined || message.deletedAtMs !== undefined) throw refuse("unknown-message");
    return message;
  }

  function followUp(call: Call): Reply {
    const interaction = find(call);
    const { original } = interaction;
    // The first message replaces "is thinking".
    if (original !== undefined && original.deletedAtMs === undefined && isLoading(original)) {
      messages.edit(original, call.body);
      return toReply(original);
    }
    const channel = world.channels.get(interaction.channelId);
    if (channel === undefined) throw refuse("unknown-channel");
    const message = messages.post(channel, call.body, { interaction });
    interaction.messages.push(message);
    return toReply(message);
  }

  return [
    { route: "POST /webhooks/:webhook/:token", access: "token", handle: followUp },
    { route: `GET ${MESSAGE}`, access: "token", handle: (call) => toReply(messageOf(call)) },
    {
      route: `PATCH ${MESSAGE}`,
      access: "token",
      handle(call) {
        const message = messageOf(call);
        messages.edit(message, call.body);
        return toReply(message);
      },
    },
    {
      route: `DELETE ${MESSAGE}`,
      access: "token",
      handle(call) {
        timeline.remove(messageOf(call));
        return NO_CONTENT;
      },
    },
  ];
}

function isLoading(message: Message): boolean {
  return (shown(message).flags & MESSAGE_FLAGS.loading) !== 0;
}
