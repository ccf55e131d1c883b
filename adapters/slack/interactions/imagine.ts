import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import type { Actor, ImagineMenu } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, CommandEvent } from "../../../src/port/events.ts";
import { readAttachmentId } from "../api/attachments.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { HandlerResult } from "../listen/dispatcher.ts";
import { findPresence } from "../people/access.ts";
import { IMAGINE } from "./commands.ts";
import { type FormContext, PROMPT, readContext, readImagineForm, toImagineForm, WHERE } from "./imagine-form.ts";
import { describeAbsence, isMember, NOT_HERE } from "./membership.ts";
import type { SubmissionPayload } from "./payloads.ts";
import { type HandlerDeps, toActor, toEventBase, type UserAction, type UserContext } from "./user-action.ts";

/** A trigger opens a form within three seconds, so this is all the time for looking up what fills it in. */
const FILL_MS = 800;
const OPEN_MS = 2_000;
const MAX_KEPT_MODELS = 100;

const NOT_OPENED =
  "Slack did not let me open the form. Try again, or write what I should draw behind the command: `/imagine a lighthouse in the fog`";

const NOT_YOURS = "This form was opened by somebody else, or before I was updated. Open it once more.";

/** The form for pictures: opened, filled in, taken. */
export interface ImagineForms {
  /** Tells the person when it does not open. Never rejects. */
  open(by: UserContext, triggerId: string, context: Opened): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

/** A form's context without the person and the place. */
type Opened = Omit<FormContext, "channelId" | "threadTs" | "personId">;

export function createImagineForms(menu: ImagineMenu, deps: HandlerDeps): ImagineForms {
  async function fill({ basis }: FormContext, by: Actor) {
    const signal = AbortSignal.timeout(FILL_MS);
    const [described, models] = await Promise.all([
      inTime(async () => (basis === undefined ? undefined : menu.describe(basis, by, signal)), signal),
      inTime(() => menu.listModels(signal), signal),
    ]);
    return { prompt: described?.prompt ?? "", options: described?.options ?? {}, models: models ?? [] };
  }

  async function open(by: UserContext, triggerId: string, opened: Opened): Promise<void> {
    const { workspace, person, channelId, threadTs } = by;
    const context: FormContext = { ...opened, channelId, threadTs, personId: person.id };
    try {
      const filled = await fill(context, toActor(by));
      const view = toImagineForm(menu, context, { ...filled, models: filled.models.slice(0, MAX_KEPT_MODELS) });
      await deps.api.call(
        workspace.teamId,
        "views.open",
        { trigger_id: triggerId, view },
        AbortSignal.timeout(OPEN_MS),
      );
    } catch (error) {
      deps.log.warn({ err: error }, "The form for a picture could not be opened.");
      // Told outside of the thread, which need not exist yet.
      const telling = deps.tellPerson({ ...by, threadTs: undefined, responseUrl: context.responseUrl }, NOT_OPENED);
      await telling.catch((err: unknown) => deps.log.warn({ err }, "Nobody could be told that a form did not open."));
    }
  }

  async function onSubmit({ user, view }: SubmissionPayload, workspace: Workspace): Promise<HandlerResult> {
    const context = readContext(view.private_metadata);
    const { prompt, options, files, channelId = context.channelId } = readImagineForm(view.state.values);
    if (context.personId !== user.id) return wrong(PROMPT, NOT_YOURS);
    if (prompt === "") return wrong(PROMPT, "Say in a few words what I should draw.");
    if (channelId === undefined) return wrong(WHERE, "Choose where the picture should go.");
    const isChosen = context.channelId === undefined;
    const [isHere, presence] = await Promise.all([
      isMember(workspace, channelId, deps),
      // The person is where the form was opened. A channel chosen in the form may be any.
      isChosen ? findPresence(workspace, channelId, user.id, deps) : { isThere: true },
    ]);
    if (!isHere) return wrong(isChosen ? WHERE : PROMPT, NOT_HERE.replaceAll("`", ""));
    if (!presence.isThere) return wrong(WHERE, describeAbsence(presence));
    const { threadTs, responseUrl, basis, isPrivate = false } = context;
    const isOurs = ({ id }: AttachmentRef) => readAttachmentId(id)?.teamId === workspace.teamId;
    const references = context.references.filter(isOurs);
    const name = `form:${view.id}:${view.hash}`;
    const userAction: UserAction = { workspace, person: user, channelId, threadTs, responseUrl, name };
    const event: CommandEvent = {
      kind: "command",
      ...(await toEventBase(userAction, { isPrivate }, deps)),
      name: IMAGINE,
      text: prompt,
      attachments: [...references, ...deps.toAttachments(workspace, files)],
      options: { ...options, ...(basis !== undefined && { basis }) },
    };
    return { events: [event] };
  }

  return { open, onSubmit };
}

function wrong(name: string, sentence: string): HandlerResult {
  return { events: [], response: { response_action: "errors", errors: { [name]: sentence } } };
}

/** Undefined where it takes too long. */
function inTime<T>(find: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return untilAborted(find(), signal).catch(() => undefined);
}
