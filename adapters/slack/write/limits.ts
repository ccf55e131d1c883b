import type { SinkLimits } from "../../../src/port/sink.ts";
import { lengthOfMarkdown, MAX_LENGTH, NEARLY_FULL } from "./markdown.ts";
import { MAX_FILE_BYTES, MAX_FILES } from "./upload.ts";

export const LIMITS: SinkLimits = {
  maxLength: MAX_LENGTH,
  lengthOf: lengthOfMarkdown,
  // A stream takes nothing back; the rest is for what Slack counts that the text alone does not.
  keptLength: NEARLY_FULL + 64,
  maxFiles: MAX_FILES,
  maxFileBytes: MAX_FILE_BYTES,
  maxMessages: 4,
};
