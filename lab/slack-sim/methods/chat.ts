import type { Arguments } from "../arguments.ts";
import { checkPictures, readContent } from "../content-rules.ts";
import { messageToWire } from "../message-wire.ts";
import {
  type Call,
  findChannel,
  findMessage,
  findThread,
  findWritableChannel,
  type MethodDeps,
  type Methods,
} from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import { isOfApp, type Json, type Message } from "../world.ts";
import { openDirect } from "./conversations.ts";

export function createChatMethods({ core, messages }: MethodDeps): Methods {
  const scopes = ["chat:write"];

  function ownMessage(args: Arguments, { workspace }: Call, refusal: string): Message {
    const channel = findChannel(workspace, args.needText("channel"));
    const message = findMessage(channel, args.needText("ts"));
    if (!isOfApp(message)) throw new SlackRefusal(refusal);
    return message;
  }

  function postMessage(args: Arguments, { workspace }: Call): Json {
    const place = args.needText("channel");
    // A person's id stands for the direct conversation with that person.
    const person = workspace.users.get(place);
    const channel = person === undefined ? findWritableChannel(workspace, place) : openDirect(core, workspace, person);
    const content = readContent(args, "post");
    checkPictures(content.blocks, workspace, core.clock.now());
    const threadTs = findThread(channel, args);
    const message = messages.post(channel, workspace.bot, content, { threadTs, linksNames: linksNames(args) });
    return { channel: channel.id, ts: message.ts, message: messageToWire(message, core.origin()) };
  }

  function update(args: Arguments, call: Call): Json {
    const message = ownMessage(args, call, "cant_update_message");
    const content = readContent(args, "update");
    checkPictures(content.blocks, message.channel.workspace, core.clock.now());
    if (message.channel.isArchived) throw new SlackRefusal("is_inactive");
    if (message.stream?.state === "in_progress") throw new SlackRefusal("streaming_state_conflict");
    const { metadata = message.content.metadata } = content;
    // An update removes everything that it does not contain, except files and metadata.
    const options = { linksNames: linksNames(args, "client") };
    message.stream?.tasks.clear();
    messages.change(message, { ...content, metadata, files: message.content.files }, options);
    const { channel, ts } = message;
    return { channel: channel.id, ts, text: content.text, message: messageToWire(message, core.origin()) };
  }

  function postEphemeral(args: Arguments, { workspace }: Call): Json {
    const channel = findWritableChannel(workspace, args.needText("channel"));
    const userId = args.needText("user");
    if (!channel.members.has(userId)) throw new SlackRefusal("user_not_in_channel");
    const content = readContent(args, "post");
    const { ts } = messages.postEphemeral({ channel, userId, threadTs: findThread(channel, args), content });
    return { message_ts: ts };
  }

  return {
    "chat.postMessage": { scopes, token: "bot", run: postMessage },
    "chat.update": { scopes, token: "bot", run: update },
    "chat.postEphemeral": { scopes, token: "bot", run: postEphemeral },
    "chat.delete": {
      scopes,
      token: "bot",
      run(args, call) {
        const message = ownMessage(args, call, "cant_delete_message");
        messages.remove(message);
        return { channel: message.channel.id, ts: message.ts };
      },
    },
    "chat.getPermalink": {
      scopes: [],
      token: "bot",
      run(args, { workspace }) {
        const channel = findChannel(workspace, args.needText("channel"));
        const { ts } = findMessage(channel, args.needText("message_ts"));
        const permalink = `${core.origin()}/archives/${channel.id}/p${ts.replace(".", "")}`;
        return { channel: channel.id, permalink };
      },
    },
  };
}

function linksNames(args: Arguments, usualParse = "none"): boolean {
  return args.flag("link_names") || (args.text("parse") ?? usualParse) !== "none";
}
