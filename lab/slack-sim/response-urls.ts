import { checkBlocks } from "./content-rules.ts";
import type { Core } from "./core.ts";
import type { Messages } from "./messages.ts";
import { listOf, textOf } from "./shown-text.ts";
import { type Channel, type Ephemeral, emptyContent, type Json, type Message, type User } from "./world.ts";

/** URLs for responding to an interaction without a token. Each works five times within half an hour. */
export interface ResponseUrls {
  create(place: ResponsePlace): string;
  use(id: string, body: Json): { status: number; text: string };
  /** Shows an acknowledgement's content as if it had been sent to the URL. */
  show(place: ResponsePlace, body: Json): void;
}

export interface ResponsePlace {
  channel: Channel;
  user: User;
  threadTs: string | undefined;
  message: Message | undefined;
  /** The ephemeral message that `replace_original` replaces. */
  ephemeral?: Ephemeral | undefined;
}

interface ResponseUrl extends ResponsePlace {
  createdAtMs: number;
  uses: number;
}

export function createResponseUrls(core: Core, messages: Messages): ResponseUrls {
  const { clock, limits, newId } = core;
  const urls = new Map<string, ResponseUrl>();

  function show(place: ResponsePlace, body: Json): Ephemeral | undefined {
    const { channel, user, message, ephemeral } = place;
    if (body["delete_original"] === true) {
      if (message !== undefined) messages.remove(message);
      if (ephemeral !== undefined) forget(ephemeral);
      return undefined;
    }
    const blocks = listOf(body["blocks"]);
    checkBlocks(blocks);
    const content = emptyContent({ text: textOf(body["text"]), blocks });
    const isReplacing = body["replace_original"] === true;
    if (isReplacing && message !== undefined) {
      messages.change(message, content);
      return undefined;
    }
    const threadTs = typeof body["thread_ts"] === "string" ? body["thread_ts"] : place.threadTs;
    if (body["response_type"] === "in_channel") {
      messages.post(channel, channel.workspace.bot, content, { threadTs });
      return undefined;
    }
    if (isReplacing && ephemeral !== undefined) forget(ephemeral);
    return messages.postEphemeral({ channel, userId: user.id, threadTs, content });
  }

  function forget(ephemeral: Ephemeral): void {
    const { ephemerals } = ephemeral.channel;
    if (ephemerals.includes(ephemeral)) ephemerals.splice(ephemerals.indexOf(ephemeral), 1);
    core.changes.changed();
  }

  return {
    show: (place, body) => void show(place, body),
    create(place) {
      const id = newId("response-");
      urls.set(id, { ...place, createdAtMs: clock.now(), uses: 0 });
      return `${core.origin()}/response/${id}`;
    },
    use(id, body) {
      const url = urls.get(id);
      if (url === undefined || clock.now() - url.createdAtMs > limits.responseUrlMs) {
        return { status: 404, text: JSON.stringify({ ok: false, error: "expired_url" }) };
      }
      if (url.uses >= limits.responseUrlUses) {
        return { status: 404, text: JSON.stringify({ ok: false, error: "used_url" }) };
      }
      url.uses += 1;
      url.ephemeral = show(url, body) ?? url.ephemeral;
      return { status: 200, text: "ok" };
    },
  };
}
