import type { Arguments } from "../arguments.ts";
import { fileToWire, mimeTypeOf } from "../file-wire.ts";
import { type Call, findChannel, findThread, type MethodDeps, type Methods } from "../method.ts";
import { invalidArguments, SlackRefusal } from "../refusal.ts";
import { type Channel, emptyContent, type Json, type StoredFile, type Workspace } from "../world.ts";

const MAX_ALT_CHARS = 1_000;

/** The three steps of an upload. The message with the files appears later. */
export function createFileMethods({ core, messages }: MethodDeps): Methods {
  function announce(args: Arguments, { workspace }: Call): Json {
    const name = args.needText("filename");
    const length = args.count("length") ?? 0;
    if (!(length > 0)) throw invalidArguments("must be greater than 0 [json-pointer:/length]");
    const altText = args.text("alt_txt") ?? "";
    if (altText.length > MAX_ALT_CHARS) throw new SlackRefusal("alt_txt_too_large");
    const id = core.newId("F");
    const file: StoredFile = {
      id,
      name,
      title: name,
      mimeType: mimeTypeOf(name),
      bytes: new Uint8Array(0),
      altText,
      owner: workspace.bot,
      announcedBytes: length,
      isComplete: false,
      readyAtMs: Infinity,
      shares: [],
    };
    workspace.files.set(id, file);
    return { file_id: id, upload_url: `${core.origin()}/upload/v1/${id}` };
  }

  function complete(args: Arguments, call: Call): Json {
    const { workspace } = call;
    const named = args.list("files");
    if (named.length === 0) throw invalidArguments("missing required field: files");
    const channelId = args.text("channel_id");
    const channel = channelId === undefined ? undefined : findMemberChannel(workspace, channelId);
    const threadTs = channel === undefined ? undefined : findThread(channel, args);
    const files = named.map(({ id, title }) => {
      const file = workspace.files.get(String(id));
      if (file === undefined || file.isComplete || file.bytes.length === 0) throw new SlackRefusal("file_not_found");
      if (typeof title === "string") file.title = title;
      return file;
    });
    const readyAtMs = core.clock.now() + core.limits.readyMs;
    for (const file of files) Object.assign(file, { isComplete: true, readyAtMs });
    const content = emptyContent({ text: args.text("initial_comment") ?? "", blocks: args.list("blocks"), files });
    if (channel !== undefined) {
      core.clock.after(core.limits.sharingMs, () => messages.post(channel, workspace.bot, content, { threadTs }));
    }
    core.changes.changed();
    return { files: files.map(({ id, title }) => ({ id, title })) };
  }

  function visible(args: Arguments, { workspace }: Call): StoredFile {
    const file = workspace.files.get(args.needText("file"));
    if (file === undefined || !file.isComplete) throw new SlackRefusal("file_not_found");
    return file;
  }

  return {
    "files.getUploadURLExternal": { scopes: ["files:write"], token: "bot", run: announce },
    "files.completeUploadExternal": { scopes: ["files:write"], token: "bot", run: complete },
    "files.info": {
      scopes: ["files:read"],
      token: "bot",
      run(args, call) {
        const file = visible(args, call);
        const isReady = file.readyAtMs <= core.clock.now();
        return { file: { ...fileToWire(file, core.origin()), ...(!isReady && { mimetype: "" }) } };
      },
    },
    "files.delete": {
      scopes: ["files:write"],
      token: "bot",
      run(args, call) {
        const file = visible(args, call);
        if (file.owner !== call.workspace.bot) throw new SlackRefusal("cant_delete_file");
        call.workspace.files.delete(file.id);
        return {};
      },
    },
  };
}

/** Finds a channel for a file. The app must be a member, even if the channel is public. */
function findMemberChannel(workspace: Workspace, id: string): Channel {
  const channel = findChannel(workspace, id);
  if (channel.isArchived) throw new SlackRefusal("is_archived");
  if (!channel.members.has(workspace.bot.id)) throw new SlackRefusal("not_in_channel");
  return channel;
}
