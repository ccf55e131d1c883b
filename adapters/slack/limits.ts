import type { SinkLimits } from "../../src/adapter.ts";
import { lengthOfMarkdown, MAX_LENGTH } from "./markdown.ts";
import { MAX_FILE_BYTES, MAX_FILES } from "./upload.ts";

export const LIMITS: SinkLimits = {
  maxLength: MAX_LENGTH,
  lengthOf: lengthOfMarkdown,
  maxFiles: MAX_FILES,
  maxFileBytes: MAX_FILE_BYTES,
  maxMessages: 4,
};
