// LM Studio. It reports template errors inside a 200 stream, and other errors as a string.
// https://lmstudio.ai/docs/developer/openai-compat
// format: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189, https://github.com/LoadShine/tada/issues/16
// template: https://github.com/mcowger/generic-copilot/pull/43, https://github.com/zed-industries/zed/issues/45379
import { alternates, type Dialect, DRAWS_NOTHING, type ErrorBody, isRecord, isToolTalk } from "../dialect.ts";

const lmStudioError: ErrorBody = (_status, message) => ({ error: message });

const TEMPLATE =
  'Error rendering prompt with jinja template: "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.".\n\nThis is usually an issue with the model\'s prompt template.';

export const lmStudio: Dialect = {
  title: "LM Studio",
  address: "http://127.0.0.1:1234/v1",
  chatModel: "mistralai/devstral-small-2-2512",
  hasModelList: true,
  errorBody: lmStudioError,
  unknownPath: (path) => ({ status: 200, body: lmStudioError(200, `Unexpected endpoint or method. (${path})`, "") }),
  rules: [
    ({ response_format: format }) =>
      isRecord(format) && format["type"] === "json_object"
        ? { status: 400, body: lmStudioError(400, "'response_format.type' must be 'json_schema' or 'text'", "") }
        : undefined,
    ({ messages }) =>
      alternates(messages, isToolTalk)
        ? undefined
        : {
            status: 200,
            headers: { "content-type": "text/event-stream" },
            body: `event: error\ndata: ${JSON.stringify({ error: { message: TEMPLATE } })}\n\n`,
          },
  ],
  explained: {
    ...DRAWS_NOTHING,
    "JSON format": { because: "the server requires a schema", says: /JSON|format/i },
  },
};
